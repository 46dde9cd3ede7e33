//===- NcclCommunicator.h - Ranks that have GPUs ----------------*- C++ -*-===//
//
// Ranks meet, exchange texts and hear of failures through another communicator;
// collectives run on the GPUs' streams, each channel as a communicator of NCCL of
// its own. A channel of one member copies on its stream, without NCCL.
//
// Errors: those of the other communicator; 7001 where NCCL loses a rank, 7004 where
// a collective does not end; 4040 without NCCL. NCCL does not know which ranks have
// not come, nor that ranks call different collectives: that they execute equal
// plans is checked before (RunCheck.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"

#include <chrono>

namespace fsdpq::rt {

struct NcclOptions {
  /// How long a collective may take, and the meeting of a channel's ranks.
  std::chrono::milliseconds collectiveTimeout = std::chrono::minutes(10);
  /// This rank's number on its host, if several ranks share a GPU there, else -1.
  /// NCCL then takes them for different hosts: right, and slow.
  int64_t sharesGpuAs = -1;
};

/// Channels take a CudaDevice. They must be gone before the communicator is, and
/// before the device. NCCL_NVLS_ENABLE is 0 unless the environment says otherwise:
/// multicast objects of a process that dies can outlive it.
std::unique_ptr<Communicator> makeNccl(std::unique_ptr<Communicator> control,
                                       const NcclOptions &options);

} // namespace fsdpq::rt
