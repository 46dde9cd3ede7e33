//===- Products.h - Matrix products on the host's cores ---------*- C++ -*-===//
//
// oneDNN multiplies f32. What is stored in bf16 is widened block by block, summed
// in f32 and rounded once, the same on every CPU.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/device/Device.h"

namespace fsdpq::rt {

/// Whether `multiply` takes such operands: f32 giving f32, or bf16 giving bf16 or
/// f32.
bool canMultiply(plan::DType dtype, plan::DType outDtype);

/// One product on at most `threads` threads; m and n are positive. With
/// `deterministic` the bits depend on nothing but the shape; products of bf16
/// always are so. Throws Error 4002 without memory and 4005 where the library
/// refuses.
void multiply(const GemmCall &call, unsigned threads, bool deterministic);

} // namespace fsdpq::rt
