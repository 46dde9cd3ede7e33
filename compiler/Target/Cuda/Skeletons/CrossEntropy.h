//===- CrossEntropy.h - CUDA text of the fused loss -------------*- C++ -*-===//
//
// Arguments as in compiler/Kernel/Bodies.h:
//   fused_cross_entropy: targets: ? x i32, inout logits: ? x V x bf16 | f32,
//                        loss: ? x f32, weight: f64
// The logits become weight times the gradient of the row's loss. A row with a
// negative target has loss and gradient 0. Work items: rows. Logits begin at
// multiples of 16 bytes. Computed in f32; gives the same bits each time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/KernelText.h"

namespace fsdpq::cuda {

struct CrossEntropyParams {
  int64_t vocabulary; ///< V, at least 1
  bool bf16 = true;   ///< element type of the logits, else f32
};

KernelText emitFusedCrossEntropy(const CrossEntropyParams &);

} // namespace fsdpq::cuda
