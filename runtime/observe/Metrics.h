//===- Metrics.h - metrics.jsonl --------------------------------*- C++ -*-===//
//
// One JSON object a line. An optimizer step:
//   {"step": 1, "epoch": 0.5, "loss": ..., "lr": ..., "grad_norm": ...,
//    "tokens": ..., "labelled_tokens": ..., "tokens_per_second": ...,
//    "step_seconds": ..., "peak_memory_bytes": ...}
// An evaluation:
//   {"step": 1, "eval_loss": ..., "eval_perplexity": ..., "eval_tokens": ...}
// Numbers have the fewest digits that give the same double again; a number
// that is not finite is null. Keys are added, never renamed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace fsdpq::rt {

struct StepRecord {
  int64_t step = 0;      ///< optimizer steps, from 1
  double epoch = 0;      ///< passes over the data after this step
  double loss = 0;       ///< before the update; nats
  double lr = 0;         ///< that this step used
  double gradNorm = 0;   ///< L2, before clipping
  int64_t tokens = 0;    ///< computed in this step, without padding
  int64_t labelledTokens = 0; ///< of these, those whose successor is learnt
  double stepSeconds = 0;
  uint64_t peakMemoryBytes = 0;

  double tokensPerSecond() const {
    return stepSeconds > 0 ? static_cast<double>(tokens) / stepSeconds : 0;
  }
};

struct EvaluationRecord {
  int64_t step = 0; ///< optimizer steps done before it; 0: none
  double loss = 0;  ///< mean over the labelled tokens; nats
  double perplexity = 0;
  int64_t labelledTokens = 0;
};

/// The line of a record, without its end.
std::string metricsLine(const StepRecord &record);
std::string metricsLine(const EvaluationRecord &record);

/// The file being written. Each line reaches the system before write() returns,
/// so that a killed run leaves whole lines. Throws Error 1301.
class MetricsFile {
public:
  /// Starts the file anew.
  explicit MetricsFile(std::string path);
  ~MetricsFile();
  MetricsFile(const MetricsFile &) = delete;
  MetricsFile &operator=(const MetricsFile &) = delete;

  void write(const StepRecord &record) { writeLine(metricsLine(record)); }
  void write(const EvaluationRecord &record) { writeLine(metricsLine(record)); }

private:
  void writeLine(std::string line);

  std::string path;
  int descriptor;
};

} // namespace fsdpq::rt
