//===- Serialize.h - exec.plan to a plan file -------------------*- C++ -*-===//
#pragma once

#include "dialects/Exec/Exec.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fsdpq {

/// A compiled kernel as it goes into the plan.
struct PlanKernel {
  std::string hash, text;
  std::vector<uint8_t> code;
};

struct SerializeOptions {
  std::string target; ///< CPU and features that kernels need
  std::map<std::string, std::string> metadata;
  std::map<std::string, PlanKernel> kernels; ///< by name; may be empty
};

/// The bytes of a plan file. Temporaries must have addresses.
std::vector<uint8_t> serializePlan(exec::PlanOp plan,
                                   const SerializeOptions &options);

} // namespace fsdpq
