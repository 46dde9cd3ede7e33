//===- Rope.h - CUDA text of rotary positions -------------------*- C++ -*-===//
//
// Arguments as in compiler/Kernel/Bodies.h:
//   rope: table: ? x E x f32 (E / 2 cosines, then E / 2 sines), inout x: ? x W
//   x
//         bf16, whose first heads * E columns are rotated in place
// Both begin at multiples of 16 bytes. Work items: rows. Computed in f32, each
// result rounded once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/KernelText.h"

namespace fsdpq::cuda {

struct RopeParams {
  int64_t columns; ///< W
  int64_t headDim; ///< E
  int64_t heads;   ///< heads * E <= W
  bool inverse;    ///< rotates back
};

/// E a multiple of 16, W of 8, and no more heads than a thread block takes.
bool hasRope(const RopeParams &);
KernelText emitRope(const RopeParams &);

} // namespace fsdpq::cuda
