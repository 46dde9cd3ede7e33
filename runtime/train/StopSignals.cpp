#include "runtime/train/StopSignals.h"

#include <atomic>

namespace fsdpq::rt {

static std::atomic<int> lastSignal = 0;
static_assert(std::atomic<int>::is_always_lock_free, "used by a handler");

StopSignals::StopSignals() {
  lastSignal = 0;
  struct sigaction note {};
  note.sa_handler = [](int number) { lastSignal = number; };
  note.sa_flags = SA_RESETHAND | SA_RESTART;
  ::sigemptyset(&note.sa_mask);
  ::sigaction(SIGINT, &note, &previousInterrupt);
  ::sigaction(SIGTERM, &note, &previousTerminate);
  ::sigaction(SIGHUP, &note, &previousHangup);
}

StopSignals::~StopSignals() {
  ::sigaction(SIGINT, &previousInterrupt, nullptr);
  ::sigaction(SIGTERM, &previousTerminate, nullptr);
  ::sigaction(SIGHUP, &previousHangup, nullptr);
}

int StopSignals::received() const { return lastSignal; }

} // namespace fsdpq::rt
