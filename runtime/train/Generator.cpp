#include "runtime/train/Generator.h"

#include "runtime/plan/Extents.h"
#include "runtime/support/Error.h"
#include "runtime/train/MicroStep.h"

#include <algorithm>
#include <cmath>

namespace fsdpq::rt {
namespace {

/// The elements of the output of logits.
size_t vocabularyOf(const plan::Plan &plan, OutputId output) {
  const plan::Extent &extent =
      *plan.outputs()->Get(static_cast<uint32_t>(output))->extent();
  return static_cast<size_t>(evaluate(extent, scalarMax(plan, extent), 0));
}

class NextToken {
public:
  explicit NextToken(Executor &executor)
      : executor(executor), program(executor, "logits"),
        lastRow(executor.input("last_row")), output(executor.output("logits")),
        logits(vocabularyOf(executor.plan().plan(), output)) {}

  int32_t after(const std::vector<int32_t> &ids) {
    const auto length = static_cast<int64_t>(ids.size());
    const Row row{ids, std::vector<int32_t>(ids.size(), kIgnoredLabel)};
    const auto last = static_cast<int32_t>(length - 1);
    executor.writeInput(lastRow, &last, sizeof last);
    program.run(packRows({&row, 1}, length), /*lossWeight=*/0);
    executor.readOutput(output, logits.data(), logits.size() * sizeof(float));

    int32_t best = -1;
    for (size_t i = 0; i < logits.size(); ++i)
      if (std::isfinite(logits[i]) && (best < 0 || logits[i] > logits[best]))
        best = static_cast<int32_t>(i);
    if (best < 0)
      throw Error(5031, ExitCode::NonFiniteLoss,
                  "the model gives no finite logit after " +
                      std::to_string(length) + " tokens",
                  "", "look for broken values in the checkpoint or adapter");
    return best;
  }

private:
  Executor &executor;
  MicroStep program;
  InputId lastRow;
  OutputId output;
  std::vector<float> logits;
};

int64_t capacityOf(const Executor &executor) {
  const auto tokens = static_cast<uint32_t>(executor.scalar("tokens"));
  return executor.plan().plan().scalars()->Get(tokens)->max();
}

} // namespace

Generation generateGreedily(Executor &executor,
                            const std::vector<int32_t> &prompt,
                            const GeneratorOptions &options) {
  const int64_t capacity = capacityOf(executor);
  const auto length = static_cast<int64_t>(prompt.size());
  if (length == 0)
    throw Error(5030, ExitCode::BadInput, "the prompt has no tokens");
  if (length > capacity)
    throw Error(5030, ExitCode::BadInput,
                "the prompt has " + std::to_string(length) +
                    " tokens; there is room for " + std::to_string(capacity),
                "", "raise --context_length or shorten the prompt");

  NextToken next(executor);
  std::vector<int32_t> sequence = prompt;
  Generation result;
  for (;;) {
    if (static_cast<int64_t>(result.ids.size()) >= options.maxNewTokens) {
      result.end = Generation::End::MaxNewTokens;
      break;
    }
    if (static_cast<int64_t>(sequence.size()) > capacity) {
      result.end = Generation::End::Capacity;
      break;
    }
    const int32_t token = next.after(sequence);
    if (std::ranges::find(options.stopIds, token) != options.stopIds.end()) {
      result.end = Generation::End::StopToken;
      break;
    }
    sequence.push_back(token);
    result.ids.push_back(token);
  }
  return result;
}

} // namespace fsdpq::rt
