//===- Rows.h - Kernels with tiles in registers -----------------*- C++ -*-===//
//
// The threads of a group own the elements of a tile in turn, some neighbours
// each. Stores and reductions are loops over the elements that a thread owns;
// what they depend on is computed where it is used. Loads that several loops
// need are held in registers as they were read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Architecture.h"
#include "compiler/Target/Cuda/Families/Emitter.h"

namespace fsdpq::cuda {

/// How the family would emit `kernel` (see generalize), or why it cannot.
FailureOr<kern::EmissionAttr> chooseRows(kern::FuncOp kernel,
                                         Decline &declined);

FailureOr<KernelText> emitRows(kern::FuncOp kernel, kern::EmissionAttr emission,
                               StringRef symbol, Decline &declined);

} // namespace fsdpq::cuda
