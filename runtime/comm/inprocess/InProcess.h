//===- InProcess.h - Ranks that are threads of one process ------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"

#include <chrono>

namespace fsdpq::rt {

/// The communicators of `size` ranks, each for a thread of its own. They read
/// each other's memory; whoever waits longer than `timeout` for another rank
/// throws 7004.
std::vector<std::unique_ptr<Communicator>>
makeInProcessRanks(int64_t size,
                   std::chrono::milliseconds timeout = std::chrono::minutes(10));

} // namespace fsdpq::rt
