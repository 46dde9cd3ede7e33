//===- StopSignals.h - Ctrl-C ends a run in good order ----------*- C++ -*-===//
#pragma once

#include <csignal>

namespace fsdpq::rt {

/// While this lives, the first SIGINT or SIGTERM is only noted; a second one
/// ends the process as if nothing had been caught. One at a time.
class StopSignals {
public:
  StopSignals();
  /// Gives the signals back to whoever had them.
  ~StopSignals();
  StopSignals(const StopSignals &) = delete;
  StopSignals &operator=(const StopSignals &) = delete;

  /// The signal that came, or 0.
  int received() const;

private:
  struct sigaction previousInterrupt, previousTerminate, previousHangup;
};

} // namespace fsdpq::rt
