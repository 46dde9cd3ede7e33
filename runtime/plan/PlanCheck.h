//===- PlanCheck.h - Whether a plan can be executed at all ------*- C++ -*-===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstddef>
#include <string>

namespace fsdpq::rt {

/// Loops inside each other, at most.
inline constexpr unsigned maxLoopDepth = 8;
/// Arguments of one launch, at most: devices marshal them on the stack.
inline constexpr unsigned maxLaunchArgs = 128;

/// Checks what FlatBuffers' verifier (which must have passed) cannot know, so
/// that an executor needs no checks of its own: every number names something;
/// every slice stays in its arena for every value of its index; every extent is
/// computable, bounded and not negative at full capacity; what instructions
/// touch at capacity lies inside their slices. (What a kernel touches is the
/// compiler's promise: a plan holds native code and is trusted like a program.)
/// `bodyBytes` is the size of the FlatBuffer. Throws Error 30xx (BadInput)
/// naming the offending thing; `where` names the file.
///   3010 names              3016 launches              3021 ports
///   3011 numbers, enums     3017 GEMMs                 3022 storage of tables
///   3012 arenas and slices  3018 copies and fills      3023 mesh and units
///   3013 levels             3019 functions and loops   3024 collectives
///   3015 extents            3020 parameters, loaders   3025 order on all ranks
/// Whether instructions of several streams are ordered: see ScheduleCheck.h.
void checkPlan(const plan::Plan &plan, size_t bodyBytes,
               const std::string &where);

} // namespace fsdpq::rt
