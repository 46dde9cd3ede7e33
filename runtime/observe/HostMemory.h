//===- HostMemory.h - What this process took of the host --------*- C++ -*-===//
#pragma once

#include <cstdint>

namespace fsdpq::rt {

/// Bytes of resident memory (VmRSS), now. 0 where the system does not tell.
uint64_t residentHostMemory();

/// The most resident memory there has been (VmHWM), pages of mapped files
/// included. 0 where the system does not tell.
uint64_t peakHostMemory();

/// Makes the present the most there has been, where the system allows it.
void resetPeakHostMemory();

} // namespace fsdpq::rt
