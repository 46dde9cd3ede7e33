//===- Passes.h - The grad phase: how gradients come about ------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/Pass/Pass.h"

namespace fsdpq {

#define GEN_PASS_DECL
#include "compiler/Grad/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/Grad/Passes.h.inc"

} // namespace fsdpq
