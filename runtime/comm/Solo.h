//===- Solo.h - A run of one rank -------------------------------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"

namespace fsdpq::rt {

/// A rank that is alone. Its collectives move bytes within its own memory, on
/// the stream they are given for.
std::unique_ptr<Communicator> makeSolo();

} // namespace fsdpq::rt
