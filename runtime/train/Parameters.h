//===- Parameters.h - The parameters of a plan ------------------*- C++ -*-===//
//
// A parameter has one instance for each layer of its unit, or a single one. An
// ordinal numbers the instances; its layer number is what the checkpoint's
// names hold. Of an instance's unit each rank of a shard group holds one range,
// so an instance may lie on one rank or on several (see Unit in plan.fbs).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/Executor.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace fsdpq::rt {

const plan::Unit &unitOf(const plan::Plan &plan,
                         const plan::Parameter &parameter);

int64_t instanceCount(const plan::Plan &plan, const plan::Parameter &parameter);

/// The layer number of an instance; -1 if the parameter has no layers.
int64_t layerOf(const plan::Plan &plan, const plan::Parameter &parameter,
                int64_t ordinal);

/// Elements of one instance.
int64_t elementCount(const plan::Parameter &parameter);

/// `pattern` with "{layer}" replaced by the instance's layer number.
std::string instanceName(const flatbuffers::String &pattern,
                         const plan::Plan &plan,
                         const plan::Parameter &parameter, int64_t ordinal);

/// Whether the parameter belongs to an adapter: it starts from a rule instead
/// of the model's checkpoint.
bool isAdapter(const plan::Parameter &parameter);

/// Whether the plan keeps the parameter's gradient between functions.
bool hasGradient(const plan::Plan &plan, const plan::Parameter &parameter);

/// The elements that an optimizer changes, over all instances.
int64_t trainableElements(const plan::Plan &plan);

std::vector<int64_t> shapeOf(const plan::Parameter &parameter);
/// "[64, 32]"
std::string shapeText(const std::vector<int64_t> &shape);

//===--- Values -------------------------------------------------------------//
//
// Of parameters stored as f32, which adapters and trained weights are; Error
// 5003 for parameters stored otherwise.

struct ElementRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// The elements of each instance that this rank holds; may be none.
ElementRange heldElements(const Executor &executor,
                          const plan::Parameter &parameter);
/// `values` are those of heldElements().
void writeHeldElements(Executor &executor, const plan::Parameter &parameter,
                       int64_t ordinal, std::span<const float> values);

/// `values` has elementCount() elements, of which each rank keeps what it
/// holds.
void writeParameter(Executor &executor, const plan::Parameter &parameter,
                    int64_t ordinal, const float *values);

struct Instance {
  const plan::Parameter *parameter;
  int64_t ordinal;
};

/// Elements that reading exchanges at a time, at most.
inline constexpr int64_t maxReadElements = int64_t(16) << 20;

/// Gives `visit` all values of the instances, in order, some consecutive ones
/// at a time. All ranks call this with the same instances and all get the
/// values: where units are cut, ranks exchange what they hold, `chunkElements`
/// at a time whatever the instances' sizes. `visit` must not throw on some
/// ranks only.
void readParameters(const Executor &executor,
                    const std::vector<Instance> &instances,
                    const std::function<void(std::span<const float>)> &visit,
                    int64_t chunkElements = maxReadElements);

/// All values of one instance; all ranks call this.
std::vector<float> readParameter(const Executor &executor,
                                 const plan::Parameter &parameter,
                                 int64_t ordinal);

/// The same for the sums of gradients. Error 5003 if the plan keeps none.
void writeGradient(Executor &executor, const plan::Parameter &parameter,
                   int64_t ordinal, const float *values);
std::vector<float> readGradient(const Executor &executor,
                                const plan::Parameter &parameter,
                                int64_t ordinal);

} // namespace fsdpq::rt
