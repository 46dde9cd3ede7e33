//===- Serialize.h - exec.plan to a plan file -------------------*- C++ -*-===//
#pragma once

#include "compiler/Target/Cuda/Resources.h"
#include "dialects/Exec/Exec.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fsdpq {

/// A compiled kernel as it goes into the plan.
struct PlanKernel {
  std::string hash, symbol, text;
  std::vector<uint8_t> code;
  std::optional<cuda::LaunchShape> launch; ///< of a cubin, also without code
  cuda::Resources resources;               ///< of a cubin that has code
};

struct SerializeOptions {
  std::string target; ///< CPU and features, or GPU, that kernels need
  std::map<std::string, std::string> metadata;
  std::map<std::string, PlanKernel> kernels; ///< by name; may be empty
  /// Bytes that products of a stream get to work in, in an arena "workspace".
  uint64_t gemmWorkspace = 0;
};

/// The bytes of a plan file. Temporaries must have addresses.
std::vector<uint8_t> serializePlan(exec::PlanOp plan,
                                   const SerializeOptions &options);

} // namespace fsdpq
