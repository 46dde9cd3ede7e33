//===- Rendezvous.h - How the ranks of a run find each other ----*- C++ -*-===//
//
// Rank 0 listens; each other rank connects to it, again and again until the
// time-out, and says who it is. Strangers are told why they are refused and
// disturb nobody. A rank that knows the job's token but cannot belong to this
// run (another fingerprint or world size) ends the run on all ranks at once.
// The token travels as it is: it keeps out mistakes and other users, not
// whoever reads the network.
//
// Errors, exit code PeerFailure:
//   7010 rank 0 cannot listen at its address and port
//   7011 ranks have not come, or rank 0 was not reached, within the time-out
//   7012 a rank was started for another number of ranks
//   7013 a rank differs in its fingerprint or speaks another protocol
//   7014 refused: another token, or what came was no greeting
//   7015 refused: that rank is there already
//   7018 two ranks cannot connect to each other for data (Mesh.h)
// Exit code BadInput:
//   7016 rank 0 does not listen on a loopback address, and there is no token
//   7017 the own address for data is not of this host
//   7019 a rank, size, port or time-out that cannot be
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/gloo/GlooCommunicator.h"
#include "runtime/comm/gloo/Socket.h"
#include "runtime/comm/gloo/Wire.h"

namespace fsdpq::rt {

/// A connection between rank 0 and another one.
struct Link {
  int64_t rank; ///< at the other end
  Socket socket;
  MessageBuffer in;
};

struct Rendezvous {
  /// Of rank 0: to all others, in their order. Of the others: to rank 0.
  std::vector<Link> links;
  /// The own address that other ranks can reach.
  std::string dataAddress;
};

/// Returns when all ranks are there.
Rendezvous meet(const GlooOptions &options);

} // namespace fsdpq::rt
