//===- Alone.h - Runs of one rank -------------------------------*- C++ -*-===//
#pragma once

#include "runtime/comm/Solo.h"

namespace fsdpq::test {

/// The communicator of tests in which there are no other ranks.
inline rt::Communicator &alone() {
  static const auto communicator = rt::makeSolo();
  return *communicator;
}

} // namespace fsdpq::test
