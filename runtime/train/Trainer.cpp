#include "runtime/train/Trainer.h"

#include "runtime/observe/HostMemory.h"
#include "runtime/support/Error.h"
#include "runtime/train/MicroStep.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace fsdpq::rt {

/// What a plan for training has.
class Trainer::Programs {
public:
  explicit Programs(Executor &executor)
      : microStep(executor, "micro_step"), loss(executor),
        optimizerStep(executor.function("optimizer_step")),
        gradNorm(executor.output("grad_norm")), lr(executor, "lr"),
        biasCorrection1(executor, "bias_correction1"),
        biasCorrection2(executor, "bias_correction2"),
        maxGradNorm(executor, "max_grad_norm") {}

  MicroStep microStep;
  LossCell loss;
  FunctionId optimizerStep;
  OutputId gradNorm;
  OptionalScalar lr, biasCorrection1, biasCorrection2, maxGradNorm;
};

/// The smaller of the limits.
static int64_t countSteps(const TrainerOptions &options, int64_t perEpoch) {
  int64_t total;
  if (__builtin_mul_overflow(options.epochs, perEpoch, &total))
    total = std::numeric_limits<int64_t>::max();
  return std::min(total, options.maxSteps.value_or(total));
}

Trainer::Trainer(Executor &executor, const std::vector<Row> &rows,
                 const TrainerOptions &options)
    : executor(executor), rows(rows), options(options),
      batcher(static_cast<int64_t>(rows.size()), options.batches),
      steps(countSteps(options, batcher.stepsPerEpoch())),
      schedule(options.schedule, options.lr, steps) {}

static void requireFinite(double value, int id, const std::string &what,
                          int64_t step, const std::string &hint) {
  if (!std::isfinite(value))
    throw Error(id, ExitCode::NonFiniteLoss,
                "the " + what + " is " + std::to_string(value) + " at step " +
                    std::to_string(step + 1),
                "", hint);
}

StepRecord Trainer::runStep(Programs &programs, int64_t step) {
  const auto start = std::chrono::steady_clock::now();
  StepRecord record;
  programs.loss.clear();
  for (int64_t k = 0; k < options.batches.accumulation; ++k) {
    const MicroBatch batch =
        packRows(rows, batcher.rowsOf(step, k, /*rank=*/0),
                 options.contextLength);
    programs.microStep.run(
        batch, meanLossWeight(batch, options.batches.accumulation));
    record.tokens += batch.tokens;
    record.labelledTokens += batch.labelled;
  }
  record.loss = programs.loss.read();
  requireFinite(record.loss, 5020, "loss", step,
                "lower --lr, clip with --grad_norm, or look for broken values "
                "in the data and the checkpoint");

  record.step = step + 1;
  record.lr = schedule.at(step);
  const auto updates = static_cast<double>(record.step);
  programs.lr.set(record.lr);
  programs.biasCorrection1.set(1 - std::pow(options.beta1, updates));
  programs.biasCorrection2.set(1 - std::pow(options.beta2, updates));
  programs.maxGradNorm.set(options.maxGradNorm);
  executor.run(programs.optimizerStep);
  float norm;
  executor.readOutput(programs.gradNorm, &norm, sizeof norm);
  record.gradNorm = norm;
  requireFinite(record.gradNorm, 5021, "gradients' norm", step,
                "lower --lr, or look for broken values in the checkpoint");

  record.epoch = updates / static_cast<double>(batcher.stepsPerEpoch());
  record.stepSeconds = std::chrono::duration<double>(
                           std::chrono::steady_clock::now() - start)
                           .count();
  record.peakMemoryBytes = peakHostMemory();
  return record;
}

TrainingResult
Trainer::run(const std::function<void(const StepRecord &)> &report,
             const std::function<bool()> &shouldStop) {
  Programs programs(executor);
  TrainingResult result;
  while (result.steps < steps) {
    const StepRecord record = runStep(programs, result.steps);
    ++result.steps;
    result.lastLoss = record.loss;
    report(record);
    if (result.steps < steps && shouldStop()) {
      result.stopped = true;
      break;
    }
  }
  return result;
}

} // namespace fsdpq::rt
