//===- LLVM.h - Names of LLVM and MLIR used everywhere ----------*- C++ -*-===//
#pragma once

#include "mlir/Support/LLVM.h"

namespace fsdpq {
using namespace mlir; // the compiler is written in MLIR's vocabulary
} // namespace fsdpq
