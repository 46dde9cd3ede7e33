//===- FirstRank.h - What one rank does for all -----------------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"

#include <exception>
#include <functional>

namespace fsdpq::rt {

/// Work that rank 0 alone does, such as writing files, between collectives that
/// all ranks take part in. A failure waits until the end, so that no rank is
/// left waiting in a collective.
class FirstRank {
public:
  explicit FirstRank(Communicator &communicator) : communicator(communicator) {}

  /// Calls `action` on rank 0 unless an earlier one failed.
  void run(const std::function<void()> &action);

  /// All ranks call this at the end. If an action failed, rank 0 throws what it
  /// threw, and the others Error 5040 (with its exit code) that says the same.
  void finish();

private:
  Communicator &communicator;
  std::exception_ptr failure;
};

} // namespace fsdpq::rt
