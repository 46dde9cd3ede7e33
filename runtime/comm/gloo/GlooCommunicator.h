//===- GlooCommunicator.h - Ranks that are processes ------------*- C++ -*-===//
//
// Rank 0 listens; the others find it (Rendezvous.h) and stay connected to it
// (ControlPlane.h), so that whoever ends or falls silent is named to all. The
// data of collectives goes between the ranks themselves, over Gloo's TCP pairs
// (GlooChannel.h).
//
// Errors: 7001-7005 (Communicator.h), 7010-7019 (Rendezvous.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"

#include <chrono>
#include <utility>

namespace fsdpq::rt {

struct GlooOptions {
  int64_t rank = 0, size = 1;

  /// Where rank 0 listens: an address or a host's name.
  std::string masterAddress = "127.0.0.1";
  uint16_t masterPort = 0;
  /// Of rank 0: a socket that listens there already, or -1. It is closed.
  int listenFd = -1;
  /// This rank's own address for data; "" takes the one that its connection to
  /// rank 0 has.
  std::string bindAddress;

  /// What only ranks of this job know. It may be "" where rank 0 listens on a
  /// loopback address.
  std::string token;
  /// What must be the same on all ranks: names, each with its value.
  std::vector<std::pair<std::string, std::string>> fingerprint;

  std::chrono::milliseconds connectTimeout = std::chrono::seconds(120);
  /// A rank that sends nothing for so long is declared stopped. At least 1 s:
  /// each sends something every 0.5 s, whatever else it does.
  std::chrono::milliseconds silenceLimit = std::chrono::seconds(5);
  /// How long a collective or an exchange may wait for the other ranks.
  std::chrono::milliseconds collectiveTimeout = std::chrono::minutes(10);
};

/// Returns when all ranks are connected. The channels must be gone before the
/// communicator is.
std::unique_ptr<Communicator> connectGloo(const GlooOptions &options);

} // namespace fsdpq::rt
