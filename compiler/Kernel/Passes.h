//===- Passes.h - The kernel phase: how computed ----------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/Pass/Pass.h"

namespace fsdpq {

#define GEN_PASS_DECL
#include "compiler/Kernel/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/Kernel/Passes.h.inc"

} // namespace fsdpq
