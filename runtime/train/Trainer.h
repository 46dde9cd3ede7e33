//===- Trainer.h - The training loop ----------------------------*- C++ -*-===//
//
// The plan's micro_step adds the gradients and the loss of a micro-batch; its
// optimizer_step computes the gradients' norm (output grad_norm), clips by the
// scalar max_grad_norm, updates and sets the gradients to zero. The loop deals
// rows and numbers; everything that computes is the plan's.
//
// On N ranks each runs the loop, and micro-batch k * N + r of a step is rank
// r's at micro-step k. The losses are added in that order on every rank, so
// that they do not depend on N. What ranks find out alone (a loss that is not
// finite, a signal) they tell each other once a step.
//
// Errors (exit code NonFiniteLoss), thrown on all ranks: 5020 a loss is not
// finite (nothing was updated), 5021 the norm of the gradients is not finite.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Batcher.h"
#include "runtime/data/Dataset.h"
#include "runtime/exec/Executor.h"
#include "runtime/observe/Metrics.h"
#include "runtime/train/Schedule.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

namespace fsdpq::rt {

enum class LossAverage {
  Batch, ///< the mean over micro-batches of the mean over their labelled tokens
  Token, ///< the mean over all labelled tokens of a step
};

struct TrainerOptions {
  /// The world size is the communicator's: the trainer sets it.
  BatcherOptions batches;
  LossAverage lossAverage = LossAverage::Batch;
  int64_t contextLength = 512;
  int64_t epochs = 1;
  /// Optimizer steps at most; none: as many as the epochs have.
  std::optional<int64_t> maxSteps;
  ScheduleKind schedule = ScheduleKind::Constant;
  double lr = 1e-5;
  double maxGradNorm = std::numeric_limits<double>::infinity();
  /// Of Adam; other rules do not read the corrections made of them.
  double beta1 = 0.9, beta2 = 0.999;
};

struct TrainingResult {
  int64_t steps = 0;
  double lastLoss = 0;
  bool stopped = false; ///< asked to, before the last step
};

class Trainer {
public:
  /// `executor` (with its parameters loaded) and `rows` must outlive this.
  /// Errors 2103, 2104: see Batcher.h.
  Trainer(Executor &executor, const std::vector<Row> &rows,
          const TrainerOptions &options);

  int64_t totalSteps() const { return steps; }
  int64_t stepsPerEpoch() const { return batcher.stepsPerEpoch(); }
  /// Rows that each epoch leaves out because they fill no step.
  int64_t droppedRows() const { return batcher.droppedRows(); }

  /// Trains from the first step. On every rank `report` is told each step when
  /// it is done: losses and tokens are those of all ranks, seconds and memory
  /// this one's. `shouldStop` is asked in each step, before the parameters are
  /// updated; once it is true on any rank, all stop after that step.
  TrainingResult run(const std::function<void(const StepRecord &)> &report,
                     const std::function<bool()> &shouldStop);

private:
  class Programs;
  struct Exchanged;

  StepRecord runStep(Programs &programs, int64_t step,
                     const std::function<bool()> &shouldStop, bool &stop);
  Exchanged runMicroSteps(Programs &programs, int64_t step,
                          const std::function<bool()> &shouldStop);
  void update(Programs &programs, int64_t step, StepRecord &record);
  int64_t labelledInStep(int64_t step);

  Executor &executor;
  int64_t rank, ranks;
  const std::vector<Row> &rows;
  TrainerOptions options;
  Batcher batcher;
  int64_t steps;
  Schedule schedule;
};

} // namespace fsdpq::rt
