#include "runtime/observe/Progress.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace fsdpq::rt {

static constexpr double secondsBetweenLines = 10;
static constexpr int barWidth = 24;

std::string formatDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9)
    return "?";
  const auto whole = static_cast<long>(std::lround(seconds));
  char text[32];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600,
                  whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  return text;
}

std::string progressText(const StepRecord &record, int64_t totalSteps,
                         double secondsLeft) {
  char text[256];
  std::snprintf(text, sizeof text,
                "step %lld/%lld  loss %.4f  lr %.1e  grad %.3g  %.0f tok/s  "
                "ETA %s",
                static_cast<long long>(record.step),
                static_cast<long long>(totalSteps), record.loss, record.lr,
                record.gradNorm, record.tokensPerSecond(),
                formatDuration(secondsLeft).c_str());
  return text;
}

Progress::Progress(std::FILE *out, Style style, int64_t totalSteps)
    : out(out), style(style), totalSteps(totalSteps) {}

Progress::~Progress() { endLine(); }

void Progress::endLine() {
  if (lineIsOpen)
    std::fputc('\n', out);
  std::fflush(out);
  lineIsOpen = false;
}

void Progress::show(const StepRecord &record) {
  ++steps;
  seconds += record.stepSeconds;
  const double left = seconds / static_cast<double>(steps) *
                      static_cast<double>(totalSteps - record.step);
  const std::string text = progressText(record, totalSteps, left);
  if (style == Style::Bar)
    return drawBar(record, text);

  const bool isDue = style == Style::EveryStep || steps == 1 ||
                     record.step == totalSteps ||
                     seconds - shownAt >= secondsBetweenLines;
  if (!isDue)
    return;
  shownAt = seconds;
  std::fprintf(out, "%s\n", text.c_str());
  std::fflush(out);
}

void Progress::drawBar(const StepRecord &record, const std::string &text) {
  const int64_t filled =
      totalSteps > 0 ? barWidth * record.step / totalSteps : barWidth;
  std::string line = "[";
  for (int64_t i = 0; i < barWidth; ++i)
    line += i < filled ? '#' : '.';
  line += "] " + text;
  // A line that wraps could not be drawn over.
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
    line.resize(std::min<size_t>(line.size(), size.ws_col - 1));
  std::fprintf(out, "\r%s\x1b[K", line.c_str());
  std::fflush(out);
  lineIsOpen = true;
}

Progress::Style styleFor(std::FILE *out) {
  const char *terminal = std::getenv("TERM");
  const bool isDumb = !terminal || std::string(terminal) == "dumb";
  return ::isatty(::fileno(out)) && !isDumb ? Progress::Style::Bar
                                            : Progress::Style::SparseLines;
}

} // namespace fsdpq::rt
