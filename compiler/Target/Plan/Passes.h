//===- Passes.h - Writing the plan down -------------------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/Pass/Pass.h"

namespace fsdpq {

#define GEN_PASS_DECL
#include "compiler/Target/Plan/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/Target/Plan/Passes.h.inc"

} // namespace fsdpq
