//===- StopSignals.h - Ctrl-C ends a run in good order ----------*- C++ -*-===//
#pragma once

#include <csignal>
#include <thread>

namespace fsdpq::rt {

/// While this lives, the first SIGINT, SIGTERM or SIGHUP is only noted; one
/// that comes more than a second later ends the process as if nothing had been
/// caught. Those within the second are the same request: a launcher, a terminal
/// and a job manager may each pass it on. A SIGHUP that is ignored, as by
/// nohup, stays so. One at a time.
class StopSignals {
public:
  StopSignals();
  /// Gives the signals back to whoever had them.
  ~StopSignals();
  StopSignals(const StopSignals &) = delete;
  StopSignals &operator=(const StopSignals &) = delete;

  /// The signal that came first, or 0.
  int received() const;

private:
  struct Caught {
    int number;
    struct sigaction previous;
  };
  Caught caught[3] = {{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}};
  sigset_t maskBefore; ///< of the thread that made this
  /// Takes the signals, so that no thread that computes is interrupted.
  std::jthread watcher;
};

} // namespace fsdpq::rt
