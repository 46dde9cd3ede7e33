//===- Signals.h - Signals that a thread shall not get ----------*- C++ -*-===//
#pragma once

#include <csignal>

namespace fsdpq::rt {

/// Threads started while this lives get no signals: those of the process are
/// for its own threads.
class AllSignalsBlocked {
public:
  AllSignalsBlocked();
  ~AllSignalsBlocked();

private:
  sigset_t before;
};

/// Gloo writes to sockets whose other end may be gone. While this lives, the
/// calling thread is told so by the error alone, without SIGPIPE.
class PipeSignalBlocked {
public:
  PipeSignalBlocked();
  ~PipeSignalBlocked();

private:
  sigset_t before;
};

} // namespace fsdpq::rt
