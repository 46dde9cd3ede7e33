//===- BuildPlan.h - From exec.plan to what runs ----------------*- C++ -*-===//
#pragma once

#include "dialects/Exec/Exec.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq {

struct BuildPlanOptions {
  bool kernels = true;     ///< compile kernels for this machine's CPU
  std::string kernelCache; ///< folder of compiled kernels; empty: none
  unsigned threads = 0;    ///< 0: one a core
};

struct BuiltPlan {
  std::vector<uint8_t> bytes; ///< of the plan file
  unsigned kernels = 0, kernelsFromCache = 0;
};

/// Compiles the kernels of a plan whose temporaries have addresses, and writes
/// it down. Fails after an error on each kernel that cannot be compiled.
FailureOr<BuiltPlan> buildPlan(exec::PlanOp plan, const BuildPlanOptions &options);

} // namespace fsdpq
