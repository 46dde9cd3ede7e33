//===- Tiles.h - Kernels with tiles in shared memory ------------*- C++ -*-===//
//
// Takes any body: what is not a function of loads and scalars lives in dynamic
// shared memory, and the threads of the block share out the elements of each
// op's results. Portable and plain; what skeletons are checked against.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Architecture.h"
#include "compiler/Target/Cuda/Families/Emitter.h"

namespace fsdpq::cuda {

/// How the family would emit `kernel` (see generalize), or why it cannot.
FailureOr<kern::EmissionAttr> chooseTiles(kern::FuncOp kernel,
                                          const Architecture &architecture,
                                          Decline &declined);

FailureOr<KernelText> emitTiles(kern::FuncOp kernel,
                                kern::EmissionAttr emission, StringRef symbol,
                                Decline &declined);

} // namespace fsdpq::cuda
