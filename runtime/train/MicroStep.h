//===- MicroStep.h - A micro-batch becomes a plan's inputs ------*- C++ -*-===//
//
// The names that the compiler gives to the host's side of a program:
//   scalars  tokens, labels (rounded-up counts), loss_weight, dropout_key (below)
//   inputs   ids, positions, segments [tokens], label_rows, label_targets
//            [labels], label_index [tokens]; see MicroBatch.h
//   outputs  loss [1], f32: micro_step and eval_step add to it
// What a program does not need, the plan lacks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/MicroBatch.h"
#include "runtime/exec/Executor.h"

#include <optional>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// A scalar that the plan may lack: then setting it does nothing.
class OptionalScalar {
public:
  OptionalScalar(Executor &executor, std::string_view name);

  template <typename Number> void set(Number value) {
    if (id)
      executor.setScalar(*id, value);
  }

private:
  Executor &executor;
  std::optional<ScalarId> id;
};

/// Runs one of the programs that read a micro-batch.
class MicroStep {
public:
  /// Error 4101 if the plan lacks the program.
  MicroStep(Executor &executor, std::string_view program);

  /// `lossWeight` multiplies the sum of the labelled tokens' losses. The
  /// batch must not exceed the plan's capacity (Error 4102).
  void run(const MicroBatch &batch, double lossWeight);

  /// What decides which elements the next runs drop; see dropoutKey.
  void setDropoutKey(double key) { dropoutKey.set(key); }

private:
  void write(const std::optional<InputId> &id,
             const std::vector<int32_t> &values);

  Executor &executor;
  FunctionId function;
  OptionalScalar tokens, labels, weight, dropoutKey;
  std::optional<InputId> ids, positions, segments, labelRows, labelTargets,
      labelIndex;
};

/// The output that programs add their losses to.
class LossCell {
public:
  explicit LossCell(Executor &executor);

  void clear();
  double read() const;

private:
  Executor &executor;
  OutputId output;
  uint32_t slice;
};

/// An integer below 2^52 from the seed and the number of the micro-batch in the
/// whole run, whichever rank computes it: mix(mix(seed) + (number + 1) * 2^64/phi)
/// / 2^12, with splitmix64's mix. Fixed for good, as adapters' first values are.
double dropoutKey(uint64_t seed, int64_t microBatch);

/// 1 / (labelled * parts), or 0 when nothing is labelled: the weight with which
/// a micro-batch adds a `parts`th of its mean loss.
double meanLossWeight(const MicroBatch &batch, int64_t parts);

} // namespace fsdpq::rt
