//===- Passes.h - Passes of the CUDA target ---------------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/Pass/Pass.h"

namespace fsdpq::cuda {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Target/Cuda/Passes.h.inc"

} // namespace fsdpq::cuda
