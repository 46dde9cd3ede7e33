//===- Passes.h - The exec phase: which bytes, which order ------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/Pass/Pass.h"

namespace fsdpq {

#define GEN_PASS_DECL
#include "compiler/Exec/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/Exec/Passes.h.inc"

} // namespace fsdpq
