//===- RankSetup.h - Who this process is in its run -------------*- C++ -*-===//
//
// Told, in this order, by
// - RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, as torchrun and our own
//   launcher set them;
// - SLURM, in a step (srun) of several tasks: each task is a rank or, with one
//   task a host and --nproc_per_node N, starts N ranks;
// - --nproc_per_node N or, as in the reference, --world_size N: this process
//   starts N ranks on this host;
// - nothing: what RankOptions::ranksByDefault says, else a run of one rank.
// What is told twice must agree.
//
// Rank 0 of a run on one host listens on the loopback address. On several hosts
// it listens at --master_addr (MASTER_ADDR, under SLURM else the first host) and
// --master_port (MASTER_PORT, under SLURM else a port made of the job's number),
// and a job token is needed.
//
// Errors (exit code BadInput): 6050 two of these contradict each other, 6051 a
// variable is missing or cannot be, 6052 see JobToken.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/fsdpq-run/options/RankOptions.h"
#include "tools/fsdpq-run/ranks/Environment.h"

#include <cstdint>
#include <string>

namespace fsdpq::run {

struct RankSetup {
  /// > 0: this process is no rank but starts so many, `rank` being the first.
  int64_t starts = 0;

  int64_t rank = 0, ranks = 1;
  int64_t localRank = 0, localRanks = 1; ///< of this host

  std::string masterAddress = "127.0.0.1";
  uint16_t masterPort = 0; ///< 0: any that is free
  /// Of rank 0: a socket that listens already, or -1.
  int listenDescriptor = -1;
  std::string token; ///< may be "" on one host

  bool isOnOneHost() const { return ranks == localRanks; }
};

/// Variables of our own launcher, beside torchrun's.
inline constexpr const char *listenVariable = "FSDPQ_LISTEN_FD";

RankSetup readRankSetup(const RankOptions &options,
                        const Environment &environment);

} // namespace fsdpq::run
