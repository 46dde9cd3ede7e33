//===- StopSignalMask.h - Which threads take SIGINT and the like -*- C++ -*-===//
#pragma once

#include <csignal>

namespace fsdpq::rt {

/// SIGINT, SIGTERM and SIGHUP.
inline sigset_t stopSignalSet() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP})
    ::sigaddset(&set, number);
  return set;
}

/// The calling thread, and those it will start, take none of them from now on.
/// Threads that compute do this: a handler that interrupted generated code has
/// been seen to leave wrong bytes behind.
inline void blockStopSignals() {
  const sigset_t set = stopSignalSet();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

} // namespace fsdpq::rt
