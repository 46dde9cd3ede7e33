//===- Cost.h - What an instruction computes and moves ----------*- C++ -*-===//
#pragma once

#include "runtime/plan/Unroll.h"

#include <cstdint>

namespace fsdpq::rt {

/// What one execution of an instruction takes, at full capacity. What a kind of
/// instruction does not do is 0.
struct Cost {
  double matmulFlops = 0; ///< of a gemm, in `type`
  plan::DType type = plan::DType::F32;
  double kernelFlops = 0; ///< of a launch that says so
  double memoryBytes = 0; ///< read and written in this rank's memory
  bool isCollective = false;
  int64_t messages = 0;     ///< that a rank sends one after the other
  uint64_t linkBytes = 0;   ///< that come from other ranks
};

/// Not for loops and events, which cost nothing.
Cost costOf(const plan::Plan &plan, const UnrolledInstruction &unrolled);

} // namespace fsdpq::rt
