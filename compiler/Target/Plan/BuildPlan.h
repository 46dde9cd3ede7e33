//===- BuildPlan.h - From exec.plan to what runs ----------------*- C++ -*-===//
#pragma once

#include "compiler/Target/Cuda/Architecture.h"
#include "dialects/Exec/Exec.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fsdpq {

struct BuildPlanOptions {
  /// "cpu", which is this machine's, or a GPU architecture ("sm_90a"). Of a GPU
  /// kernels must be prepared (kern-prepare-emission).
  std::string target = "cpu";
  bool kernels = true; ///< compile kernels; else the plan can be looked at, not run
  std::string kernelCache; ///< folder of compiled kernels; empty: none
  unsigned threads = 0;    ///< 0: one a core
  std::string dumpKernels; ///< folder for the kernels' texts; empty: none
  std::string overrideKernels; ///< folder of CUDA texts to use; empty: none
  std::map<std::string, std::string> metadata; ///< that the plan is to have
};

struct BuiltPlan {
  std::vector<uint8_t> bytes; ///< of the plan file
  unsigned kernels = 0, kernelsFromCache = 0;
};

/// Bytes of the arena "workspace" for each stream that has products, in a plan for
/// a GPU: what its library asks for.
inline constexpr uint64_t gemmWorkspaceBytes = 32 << 20;

/// The GPU of a BuildPlanOptions::target; nothing if it is the CPU. Error
/// FSDPQ-0605, at `place`, if the name is unknown: the known ones are listed.
FailureOr<std::optional<cuda::Architecture>> parseTarget(StringRef target,
                                                         Location place);

/// Compiles the kernels of a plan whose temporaries have addresses, and writes
/// it down. Fails after an error on each kernel that cannot be compiled.
FailureOr<BuiltPlan> buildPlan(exec::PlanOp plan, const BuildPlanOptions &options);

} // namespace fsdpq
