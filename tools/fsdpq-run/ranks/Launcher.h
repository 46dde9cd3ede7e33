//===- Launcher.h - Starts the ranks of a host ------------------*- C++ -*-===//
//
// Each rank is a process with the same command line and torchrun's variables.
// Rank 0 has the terminal; of the others the standard error comes through with
// "[rank r] " in front of each line, and the standard output is dropped. No
// rank outlives the launcher, however that ends.
//
// SIGINT, SIGTERM and SIGHUP go on to the ranks, which end in good order; a
// second one, more than a second later, kills them.
//
// Errors (exit code RunFailure unless said otherwise): 6053 the port is in use
// (BadInput), 6054 the ranks cannot be started; said, not thrown: 6055 which
// rank failed first, and how.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/fsdpq-run/ranks/RankSetup.h"

#include <chrono>
#include <string>
#include <vector>

namespace fsdpq::run {

struct LaunchOptions {
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments; ///< argv; [0] is the program's name
  /// The ranks share the host's cores, unless the user said how many each has.
  bool divideThreads = true;
  /// What the others have after a rank failed, to learn of it and to end by
  /// themselves; then SIGTERM, and the last time later SIGKILL.
  std::chrono::milliseconds timeToEnd{3000}, timeToTerminate{1500};
};

/// Starts the ranks [setup.rank, setup.rank + setup.starts) and waits for all.
///
/// Returns 0 if all did. Else the exit code of the rank that caused the end:
/// the first one that failed otherwise than with PeerFailure, which a rank
/// returns when another one has failed; PeerFailure for a rank that a signal
/// killed. After a signal to the launcher: 128 + its number, unless a rank
/// failed of its own or all were done already.
int launchRanks(const RankSetup &setup, const LaunchOptions &options);

} // namespace fsdpq::run
