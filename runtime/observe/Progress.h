//===- Progress.h - A run as its user watches it ----------------*- C++ -*-===//
#pragma once

#include "runtime/observe/Metrics.h"

#include <cstdio>
#include <string>

namespace fsdpq::rt {

/// "1:02:03", "2:03"; "?" for what is not finite.
std::string formatDuration(double seconds);

/// "step 3/40  loss 1.2345  lr 1.0e-05  grad 0.512  812 tok/s  ETA 0:41"
std::string progressText(const StepRecord &record, int64_t totalSteps,
                         double secondsLeft);

/// Shows the steps of a run.
class Progress {
public:
  enum class Style {
    Bar,         ///< one line that is drawn again: for a terminal
    SparseLines, ///< the first step, the last, and one every ten seconds
    EveryStep,   ///< a line for every step
  };

  /// `out` must outlive this.
  Progress(std::FILE *out, Style style, int64_t totalSteps);
  /// Leaves the terminal's cursor on a line of its own.
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void show(const StepRecord &record);
  /// To be called before other text goes to the same place.
  void endLine();

private:
  void drawBar(const StepRecord &record, const std::string &text);

  std::FILE *out;
  Style style;
  int64_t totalSteps, steps = 0;
  double seconds = 0, shownAt = 0;
  bool lineIsOpen = false;
};

/// Bar where `out` is a terminal, SparseLines elsewhere.
Progress::Style styleFor(std::FILE *out);

} // namespace fsdpq::rt
