//===- ListeningSocket.h - Where the ranks of a host meet -------*- C++ -*-===//
#pragma once

#include <cstdint>

namespace fsdpq::run {

/// A socket that listens on the loopback address. A launcher has it before any
/// rank starts: a free port cannot be taken in between, and a rank that is
/// early waits instead of being refused.
class ListeningSocket {
public:
  /// `port` 0: any that is free. Errors 6053, 6054: see Launcher.h.
  explicit ListeningSocket(uint16_t port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket &) = delete;
  ListeningSocket &operator=(const ListeningSocket &) = delete;

  /// Closed when a program is executed.
  int descriptor() const { return descriptor_; }
  uint16_t port() const { return port_; }

private:
  int descriptor_;
  uint16_t port_;
};

} // namespace fsdpq::run
