//===- Failure.h - What ended a run of several ranks ------------*- C++ -*-===//
#pragma once

#include "runtime/support/Error.h"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace fsdpq::rt {

/// The first thing that went wrong, told to all ranks.
struct Failure {
  int id; ///< 7001-7005, or one of Rendezvous.h
  std::string text;

  /// The Error of it for whoever was at `where` when it became known.
  Error at(const std::string &where) const;
};

/// "rank 2", "ranks 1, 3"
std::string rankList(std::span<const int64_t> ranks);

/// "5 s", "250 ms"
std::string durationText(std::chrono::milliseconds duration);

} // namespace fsdpq::rt
