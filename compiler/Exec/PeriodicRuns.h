//===- PeriodicRuns.h - Loops in a list of layer kinds ----------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace fsdpq {

/// `period` consecutive entries repeated `count` times from `start`.
struct PeriodicRun {
  int64_t start, period, count;
};

/// Cuts `kinds` into periodic runs: at each place the run that covers most,
/// with the shortest period among equals. 0,1,0,1,0 is a run of (0,1) twice and
/// a run of (0) once.
SmallVector<PeriodicRun> findPeriodicRuns(ArrayRef<int32_t> kinds);

} // namespace fsdpq
