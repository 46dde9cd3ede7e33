//===- Emission.h - Kernels to CUDA text ------------------------*- C++ -*-===//
//
// kern-prepare-emission chooses how each kernel is emitted and writes the choice
// down as the attribute `emission` (#kern.emission); emitKernel prints, and
// decides nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Architecture.h"
#include "compiler/Target/Cuda/KernelText.h"
#include "dialects/Kern/Kern.h"

namespace fsdpq::cuda {

/// Sets the emission attribute of `kernel`. Error FSDPQ-0510 where no family can
/// emit its body, naming the operation that none of them takes.
LogicalResult prepareEmission(kern::FuncOp kernel, const Architecture &);

/// The text of a prepared kernel. Deterministic; equal kernels have equal text
/// whatever their names, but for the symbol.
FailureOr<KernelText> emitKernel(kern::FuncOp kernel, const Architecture &);

} // namespace fsdpq::cuda
