//===- Trainer.h - The training loop ----------------------------*- C++ -*-===//
//
// The plan's micro_step adds the gradients and the loss of a micro-batch; its
// optimizer_step computes the gradients' norm (output grad_norm), clips by the
// scalar max_grad_norm, updates and sets the gradients to zero. The loop deals
// rows and numbers; everything that computes is the plan's.
//
// Errors (exit code NonFiniteLoss): 5020 the loss is not finite (nothing was
// updated), 5021 the norm of the gradients is not finite.
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

struct TrainerOptions {
  BatcherOptions batches;
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

  /// Trains from the first step. `report` is told each step when it is done;
  /// `shouldStop` is asked after each.
  TrainingResult run(const std::function<void(const StepRecord &)> &report,
                     const std::function<bool()> &shouldStop);

private:
  class Programs;

  StepRecord runStep(Programs &programs, int64_t step);

  Executor &executor;
  const std::vector<Row> &rows;
  TrainerOptions options;
  Batcher batcher;
  int64_t steps;
  Schedule schedule;
};

} // namespace fsdpq::rt
