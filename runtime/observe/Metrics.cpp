#include "runtime/observe/Metrics.h"

#include "runtime/support/Error.h"

#include <cerrno>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unistd.h>

namespace fsdpq::rt {

std::string metricsLine(const StepRecord &record) {
  return nlohmann::ordered_json{
      {"step", record.step},
      {"epoch", record.epoch},
      {"loss", record.loss},
      {"lr", record.lr},
      {"grad_norm", record.gradNorm},
      {"tokens", record.tokens},
      {"labelled_tokens", record.labelledTokens},
      {"tokens_per_second", record.tokensPerSecond()},
      {"step_seconds", record.stepSeconds},
      {"peak_memory_bytes", record.peakMemoryBytes}}
      .dump();
}

std::string metricsLine(const EvaluationRecord &record) {
  return nlohmann::ordered_json{{"step", record.step},
                                {"eval_loss", record.loss},
                                {"eval_perplexity", record.perplexity},
                                {"eval_tokens", record.labelledTokens}}
      .dump();
}

MetricsFile::MetricsFile(std::string filePath)
    : path(std::move(filePath)),
      descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                        0644)) {
  if (descriptor < 0)
    throw systemError("creating a file", path);
}

MetricsFile::~MetricsFile() { ::close(descriptor); }

void MetricsFile::writeLine(std::string line) {
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    ssize_t written = ::write(descriptor, rest.data(), rest.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      throw systemError("writing", path);
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

} // namespace fsdpq::rt
