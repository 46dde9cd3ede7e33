#include "runtime/train/Evaluator.h"

#include "runtime/support/Error.h"
#include "runtime/train/MicroStep.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace fsdpq::rt {

EvaluationRecord evaluate(Executor &executor, const std::vector<Row> &rows,
                          int64_t batchSize, int64_t contextLength,
                          const std::function<void(int64_t)> &progress) {
  MicroStep evalStep(executor, "eval_step");
  LossCell loss(executor);
  EvaluationRecord result;
  double sum = 0;
  const auto count = static_cast<int64_t>(rows.size());
  for (int64_t first = 0; first < count; first += batchSize) {
    const int64_t size = std::min(batchSize, count - first);
    const MicroBatch batch =
        packRows(std::span(rows).subspan(first, size), contextLength);
    if (batch.labelled > 0) {
      loss.clear();
      evalStep.run(batch, meanLossWeight(batch, 1));
      const double mean = loss.read();
      if (!std::isfinite(mean))
        throw Error(5020, ExitCode::NonFiniteLoss,
                    "the loss of rows " + std::to_string(first + 1) + " to " +
                        std::to_string(first + size) + " is " +
                        std::to_string(mean),
                    "", "look for broken values in the checkpoint or adapter");
      sum += mean * static_cast<double>(batch.labelled);
      result.labelledTokens += batch.labelled;
    }
    if (progress)
      progress(first + size);
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
