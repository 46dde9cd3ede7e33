//===- Parameters.h - The parameters of a plan ------------------*- C++ -*-===//
//
// A parameter of the plan has one instance for each layer it belongs to, or a
// single one. An ordinal numbers the instances; its layer number is what the
// checkpoint's names hold.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/exec/Executor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::rt {

int64_t instanceCount(const plan::Parameter &parameter);

/// The layer number of an instance; -1 if the parameter has no layers.
int64_t layerOf(const plan::Parameter &parameter, int64_t ordinal);

/// Elements of one instance.
int64_t elementCount(const plan::Parameter &parameter);

/// `pattern` with "{layer}" replaced by the instance's layer number.
std::string instanceName(const flatbuffers::String &pattern,
                         const plan::Parameter &parameter, int64_t ordinal);

/// Whether the parameter belongs to an adapter: it starts from a rule instead
/// of the model's checkpoint.
bool isAdapter(const plan::Parameter &parameter);

/// The elements that an optimizer changes, over all instances.
int64_t trainableElements(const plan::Plan &plan);

std::vector<int64_t> shapeOf(const plan::Parameter &parameter);
/// "[64, 32]"
std::string shapeText(const std::vector<int64_t> &shape);

/// The values of an instance stored as f32, which adapters and trained weights
/// are; `values` has elementCount() elements. Error 5003 for parameters stored
/// otherwise.
void writeParameter(Executor &executor, const plan::Parameter &parameter,
                    int64_t ordinal, const float *values);
std::vector<float> readParameter(const Executor &executor,
                                 const plan::Parameter &parameter,
                                 int64_t ordinal);

} // namespace fsdpq::rt
