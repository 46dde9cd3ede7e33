#include "runtime/train/Trainer.h"

#include "runtime/comm/Communicator.h"
#include "runtime/observe/HostMemory.h"
#include "runtime/support/Error.h"
#include "runtime/train/MicroStep.h"
#include "runtime/train/RankNumbers.h"

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

static BatcherOptions dealtTo(BatcherOptions batches, int64_t ranks) {
  batches.worldSize = ranks;
  return batches;
}

Trainer::Trainer(Executor &executor, const std::vector<Row> &rows,
                 const TrainerOptions &options)
    : executor(executor), rank(executor.communicator().rank()),
      ranks(executor.communicator().size()), rows(rows), options(options),
      batcher(static_cast<int64_t>(rows.size()),
              dealtTo(options.batches, ranks)),
      steps(countSteps(options, batcher.stepsPerEpoch())),
      schedule(options.schedule, options.lr, steps) {}

static void requireFinite(double value, int id, const std::string &what,
                          const std::string &place, const std::string &hint) {
  if (!std::isfinite(value))
    throw Error(id, ExitCode::NonFiniteLoss,
                "the " + what + " is " + std::to_string(value) + " at " + place,
                "", hint);
}

static std::string stepText(int64_t step) {
  return "step " + std::to_string(step + 1);
}

int64_t Trainer::labelledInStep(int64_t step) {
  int64_t count = 0;
  for (int64_t k = 0; k < options.batches.accumulation; ++k)
    for (int64_t r = 0; r < ranks; ++r)
      count += countLabelled(rows, batcher.rowsOf(step, k, r),
                             options.contextLength);
  return count;
}

/// What ranks tell each other of a step, all of it as numbers.
struct Trainer::Exchanged {
  bool stop = false;
  int64_t tokens = 0, labelled = 0;
  std::vector<double> losses; ///< of the micro-steps

  std::vector<double> encode() const {
    std::vector<double> numbers{stop ? 1. : 0., static_cast<double>(tokens),
                                static_cast<double>(labelled)};
    numbers.insert(numbers.end(), losses.begin(), losses.end());
    return numbers;
  }
  static Exchanged decode(const std::vector<double> &numbers) {
    return {numbers[0] != 0,
            static_cast<int64_t>(numbers[1]),
            static_cast<int64_t>(numbers[2]),
            {numbers.begin() + 3, numbers.end()}};
  }
};

Trainer::Exchanged
Trainer::runMicroSteps(Programs &programs, int64_t step,
                       const std::function<bool()> &shouldStop) {
  const int64_t accumulation = options.batches.accumulation;
  double tokenWeight = 0;
  if (options.lossAverage == LossAverage::Token)
    if (const int64_t labelled = labelledInStep(step))
      tokenWeight = 1 / static_cast<double>(labelled);

  Exchanged mine;
  for (int64_t k = 0; k < accumulation; ++k) {
    const MicroBatch batch =
        packRows(rows, batcher.rowsOf(step, k, rank), options.contextLength);
    const Trace::Span span(executor.trace(), "micro-step");
    programs.loss.clear();
    programs.microStep.setDropoutKey(
        dropoutKey(options.batches.seed, (step * accumulation + k) * ranks + rank));
    programs.microStep.run(batch,
                           options.lossAverage == LossAverage::Token
                               ? tokenWeight
                               : meanLossWeight(batch, accumulation * ranks));
    mine.losses.push_back(programs.loss.read());
    mine.tokens += batch.tokens;
    mine.labelled += batch.labelled;
  }
  mine.stop = shouldStop();
  return mine;
}

void Trainer::update(Programs &programs, int64_t step, StepRecord &record) {
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
  requireFinite(record.gradNorm, 5021, "gradients' norm", stepText(step),
                "lower --lr, or look for broken values in the checkpoint");
}

StepRecord Trainer::runStep(Programs &programs, int64_t step,
                            const std::function<bool()> &shouldStop,
                            bool &stop) {
  const Trace::Span span(executor.trace(), "step");
  const auto start = std::chrono::steady_clock::now();
  std::vector<Exchanged> all;
  for (const std::vector<double> &numbers :
       exchangeNumbers(executor.communicator(),
                       runMicroSteps(programs, step, shouldStop).encode(),
                       "losses of " + stepText(step)))
    all.push_back(Exchanged::decode(numbers));

  StepRecord record;
  for (int64_t k = 0; k < options.batches.accumulation; ++k)
    for (size_t r = 0; r < all.size(); ++r) {
      const double loss = all[r].losses[static_cast<size_t>(k)];
      requireFinite(loss, 5020, "loss",
                    stepText(step) + ", micro-step " + std::to_string(k + 1) +
                        ", on rank " + std::to_string(r),
                    "lower --lr, clip with --grad_norm, or look for broken "
                    "values in the data and the checkpoint");
      record.loss += loss;
    }
  for (const Exchanged &rankStep : all) {
    record.tokens += rankStep.tokens;
    record.labelledTokens += rankStep.labelled;
    stop = stop || rankStep.stop;
  }

  update(programs, step, record);
  record.epoch = static_cast<double>(record.step) /
                 static_cast<double>(batcher.stepsPerEpoch());
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
  bool stop = false;
  while (result.steps < steps && !stop) {
    const StepRecord record = runStep(programs, result.steps, shouldStop, stop);
    ++result.steps;
    result.lastLoss = record.loss;
    report(record);
  }
  result.stopped = result.steps < steps;
  return result;
}

} // namespace fsdpq::rt
