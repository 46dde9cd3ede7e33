#include "runtime/train/StopSignals.h"

#include "runtime/support/StopSignalMask.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <mutex>

namespace fsdpq::rt {

static std::atomic<int> firstSignal = 0;
static std::atomic<int64_t> firstTime = 0;
static_assert(std::atomic<int>::is_always_lock_free &&
                  std::atomic<int64_t>::is_always_lock_free,
              "used by a handler");

static int64_t milliseconds() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

static void noteSignal(int number) {
  constexpr int64_t together = 1000;
  if (firstSignal == 0) {
    firstTime = milliseconds();
    firstSignal = number;
  } else if (milliseconds() - firstTime > together) {
    ::signal(number, SIG_DFL);
    ::raise(number); // arrives when this handler returns
  }
}

StopSignals::StopSignals() {
  firstSignal = 0;
  struct sigaction note {};
  note.sa_handler = noteSignal;
  note.sa_flags = SA_RESTART;
  ::sigemptyset(&note.sa_mask);
  for (auto &[number, previous] : caught) {
    ::sigaddset(&note.sa_mask, number);
    ::sigaction(number, nullptr, &previous);
  }
  for (auto &[number, previous] : caught)
    if (number != SIGHUP || previous.sa_handler != SIG_IGN)
      ::sigaction(number, &note, nullptr);

  // It starts with the mask of this thread, which does not block them yet.
  watcher = std::jthread([](std::stop_token stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
  });
  const sigset_t set = stopSignalSet();
  ::pthread_sigmask(SIG_BLOCK, &set, &maskBefore);
}

StopSignals::~StopSignals() {
  watcher.request_stop();
  watcher.join();
  ::pthread_sigmask(SIG_SETMASK, &maskBefore, nullptr);
  for (auto &[number, previous] : caught)
    ::sigaction(number, &previous, nullptr);
}

int StopSignals::received() const { return firstSignal; }

} // namespace fsdpq::rt
