//===- Batcher.h - Which rows a rank reads at a micro-step ------*- C++ -*-===//
//
// The rows of an epoch, in order or shuffled, make micro-batches of `batchSize`
// rows. Of one optimizer step's micro-batches, number k * worldSize + rank
// belongs to `rank` at micro-step k: the world size only says who computes
// which, so a run on N ranks with accumulation a sees what one rank with
// accumulation a * N sees. An epoch takes as many whole steps as its rows give;
// the rows that are left wait for another epoch (with shuffling, others will be
// left then).
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fsdpq::rt {

struct BatcherOptions {
  int64_t batchSize = 1;
  int64_t accumulation = 1; // micro-steps of an optimizer step
  int64_t worldSize = 1;
  bool shuffle = true;
  uint64_t seed = 0;
};

/// Equal arguments give equal answers on every rank, in any order of calls, so
/// a resumed run continues with the very rows an uninterrupted one reads. Not
/// for use by several threads at once: the order of the last epoch is kept.
class Batcher {
public:
  /// Throws Error 2103 for an option below 1 and Error 2104 when the rows do
  /// not fill one step.
  Batcher(int64_t rows, const BatcherOptions &options);

  int64_t stepsPerEpoch() const { return steps; }
  /// Rows that an epoch leaves out; worth a notice when not 0.
  int64_t droppedRows() const { return rows - steps * rowsPerStep; }

  /// The indices of the `batchSize` rows of a micro-batch. `step` counts
  /// optimizer steps from 0 over all epochs. Valid until the next call.
  std::span<const int64_t> rowsOf(int64_t step, int64_t microStep,
                                  int64_t rank);

private:
  int64_t rows, rowsPerStep, steps;
  BatcherOptions options;
  int64_t orderedEpoch = -1;
  std::vector<int64_t> order;
};

/// How many optimizer steps `rows` rows give in an epoch; 0 if too few. All
/// arguments at least 1.
int64_t stepsPerEpoch(int64_t rows, int64_t batchSize, int64_t accumulation,
                      int64_t worldSize);

/// The permutation of 0 to rows - 1 that `epoch` reads: a Fisher-Yates shuffle
/// (from the last place down, each exchanged with one at or before it) drawn
/// from splitmix64. The generator starts at seed + (epoch + 1) * 2^64 / phi,
/// put through one round; a draw below n is the high word of a 64 x 64 bit
/// product, drawn again where that would favour some values. Fixed for good:
/// another order would break resumed runs.
std::vector<int64_t> shuffledOrder(int64_t rows, uint64_t seed, int64_t epoch);

} // namespace fsdpq::rt
