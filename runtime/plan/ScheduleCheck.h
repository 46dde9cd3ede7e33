//===- ScheduleCheck.h - Whether a plan's streams are ordered ---*- C++ -*-===//
//
// Works on the unrolled functions, with a vector clock for each stream and, for
// each byte range of the arenas, the last write and the reads since. So what is
// found is exact for the plan's capacity; nothing is assumed of loops.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <string>
#include <vector>

namespace fsdpq::rt {

enum class ScheduleFaultKind {
  /// Two instructions of different streams use the same bytes, one of them
  /// writes, and no chain of Record and Wait orders them.
  Race,
  /// A stream other than the first works before it has waited for the first
  /// (which holds all that was done before the function).
  NotForked,
  /// The first stream does not wait, before the function ends, for all work of
  /// another stream.
  NotJoined,
  /// A slice with a unit is read while its bytes are not those parameters: they
  /// were never gathered, or something else was written over them.
  Residency,
  /// A collective in a loop whose count depends on a scalar: ranks may call
  /// their collectives in different orders.
  CollectiveOrder,
  /// More than can be checked, see maxUnrolled in Unroll.h.
  TooLong,
};

struct ScheduleFault {
  ScheduleFaultKind kind;
  std::string message; ///< names instructions, streams, slices and bytes
};

/// The faults of all functions, each pair of instructions and slices once (at
/// the first indices where it shows), at most maxScheduleFaults of a function.
/// `plan` must have passed checkPlan, save for its order on all ranks (3025).
///
/// A unit's parameters are in a slice that
/// - an AllGather wrote whose source was the range that this rank holds of the
///   same ordinal, among as many ranks as there are shards; or
/// - is that range itself or, where there is one shard, lies in it.
/// Does not throw: compiler passes, which know no exceptions, call it too.
std::vector<ScheduleFault> checkSchedule(const plan::Plan &plan);

inline constexpr size_t maxScheduleFaults = 32;

/// "race", "not forked", "not joined", "residency", "collective order", "too
/// long".
const char *scheduleFaultName(ScheduleFaultKind kind);

} // namespace fsdpq::rt
