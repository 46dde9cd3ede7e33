//===- Passes.h - Fusions of tfm operations ---------------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/Pass/Pass.h"

namespace fsdpq {

#define GEN_PASS_DECL
#include "compiler/Fuse/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/Fuse/Passes.h.inc"

} // namespace fsdpq
