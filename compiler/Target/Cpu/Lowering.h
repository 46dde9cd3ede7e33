//===- Lowering.h - The steps of kern-to-llvm -------------------*- C++ -*-===//
//
// Each step takes one function. They run in the order in which they stand here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Kern/Kern.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace fsdpq::cpu {

/// What the steps need to know about the target and the kernel's schedule.
struct LoweringOptions {
  unsigned vectorBits;  ///< width of a vector register
  unsigned tileRows;    ///< rows of a contraction's output held in registers
  unsigned tileVectors; ///< vectors of each of these rows
  bool permutes;        ///< AVX-512F permutes are there
};

/// Turns named linalg ops into generics and fuses elementwise producers into
/// their only consumers.
LogicalResult fuseElementwise(kern::FuncOp kernel);

/// Replaces `kernel` by a function of its arguments and of the range of items,
/// which loops over them; tiles become buffers' views as tensors. Decides which
/// stores are computed in place.
FailureOr<func::FuncOp> convertKernelToFunc(kern::FuncOp kernel,
                                            unsigned vectorBits);

/// One-shot bufferization with the options that kernels need.
LogicalResult bufferizeKernel(func::FuncOp function);

/// Whether elements of the last dimension of `memref` follow one another.
bool hasUnitStride(Value memref);

/// Rewrites contractions (two parallel, one reduction dimension) as vector code
/// with accumulators in registers.
void lowerContractions(func::FuncOp function, const LoweringOptions &options);

/// Rewrites two-dimensional transpositions with vector loads and stores.
void lowerTransposes(func::FuncOp function, const LoweringOptions &options);

/// Vectorises generics with table look-ups, and expands the look-ups of all.
LogicalResult lowerLookups(func::FuncOp function,
                           const LoweringOptions &options);

/// Turns the remaining linalg ops and copies into loops.
LogicalResult lowerToLoops(func::FuncOp function);

/// Moves allocations to the stack frame. Fails if the frame gets too large.
LogicalResult promoteAllocations(func::FuncOp function);

/// Math functions: polynomials for f32 exp, log, tanh and erf.
void expandMath(func::FuncOp function);

} // namespace fsdpq::cpu
