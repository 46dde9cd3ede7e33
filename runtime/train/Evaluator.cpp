#include "runtime/train/Evaluator.h"

#include "runtime/comm/Communicator.h"
#include "runtime/support/Error.h"
#include "runtime/train/MicroStep.h"
#include "runtime/train/RankNumbers.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace fsdpq::rt {

namespace {

/// The micro-batches of an evaluation, numbered in the order of their rows.
class EvaluationBatches {
public:
  EvaluationBatches(const std::vector<Row> &rows, int64_t batchSize)
      : rows(rows), batchSize(batchSize) {}

  int64_t count() const { return (size() + batchSize - 1) / batchSize; }

  /// None for numbers from count() on.
  std::span<const Row> rowsOf(int64_t number) const {
    const int64_t begin = rowsBefore(number), end = rowsBefore(number + 1);
    return std::span(rows).subspan(static_cast<size_t>(begin),
                                   static_cast<size_t>(end - begin));
  }
  int64_t rowsBefore(int64_t number) const {
    return std::min(number * batchSize, size());
  }

private:
  int64_t size() const { return static_cast<int64_t>(rows.size()); }

  const std::vector<Row> &rows;
  int64_t batchSize;
};

/// Two numbers for each of this rank's micro-batches: the mean loss and the
/// labelled tokens. Where others still have one but this rank does not, it runs
/// an empty one, because they need it for their collectives.
std::vector<double> runBatches(Executor &executor,
                               const EvaluationBatches &batches,
                               int64_t contextLength,
                               const std::function<void(int64_t)> &progress) {
  const int64_t rank = executor.communicator().rank();
  const int64_t ranks = executor.communicator().size();
  MicroStep evalStep(executor, "eval_step");
  LossCell loss(executor);
  std::vector<double> numbers;
  for (int64_t first = 0; first < batches.count(); first += ranks) {
    const MicroBatch batch =
        packRows(batches.rowsOf(first + rank), contextLength);
    loss.clear();
    evalStep.run(batch, meanLossWeight(batch, 1));
    numbers.push_back(loss.read());
    numbers.push_back(static_cast<double>(batch.labelled));
    if (progress)
      progress(batches.rowsBefore(first + ranks));
  }
  return numbers;
}

} // namespace

EvaluationRecord evaluate(Executor &executor, const std::vector<Row> &rows,
                          int64_t batchSize, int64_t contextLength,
                          const std::function<void(int64_t)> &progress) {
  const EvaluationBatches batches(rows, batchSize);
  const auto all =
      exchangeNumbers(executor.communicator(),
                      runBatches(executor, batches, contextLength, progress),
                      "losses of the evaluation");
  EvaluationRecord result;
  double sum = 0;
  for (int64_t number = 0; number < batches.count(); ++number) {
    const auto ranks = static_cast<int64_t>(all.size());
    const double *numbers = &all[static_cast<size_t>(number % ranks)]
                                [static_cast<size_t>(number / ranks * 2)];
    const double mean = numbers[0], labelled = numbers[1];
    if (!std::isfinite(mean))
      throw Error(5020, ExitCode::NonFiniteLoss,
                  "the loss of rows " +
                      std::to_string(batches.rowsBefore(number) + 1) + " to " +
                      std::to_string(batches.rowsBefore(number + 1)) + " is " +
                      std::to_string(mean),
                  "", "look for broken values in the checkpoint or adapter");
    sum += mean * labelled;
    result.labelledTokens += static_cast<int64_t>(labelled);
  }
  if (result.labelledTokens == 0)
    throw Error(5022, ExitCode::BadInput,
                "no token of the data set is labelled: there is no loss", "",
                "raise --context_length if the answers were cut off");
  result.loss = sum / static_cast<double>(result.labelledTokens);
  result.perplexity = std::exp(result.loss);
  return result;
}

} // namespace fsdpq::rt
