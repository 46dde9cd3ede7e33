#include "runtime/comm/gloo/Signals.h"

#include <ctime>

namespace fsdpq::rt {

AllSignalsBlocked::AllSignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
}

AllSignalsBlocked::~AllSignalsBlocked() {
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

static sigset_t pipeSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

PipeSignalBlocked::PipeSignalBlocked() {
  const sigset_t pipe = pipeSignal();
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
}

PipeSignalBlocked::~PipeSignalBlocked() {
  if (sigismember(&before, SIGPIPE))
    return;
  // One that came meanwhile would be delivered now.
  const sigset_t pipe = pipeSignal();
  const timespec now = {};
  while (sigtimedwait(&pipe, nullptr, &now) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace fsdpq::rt
