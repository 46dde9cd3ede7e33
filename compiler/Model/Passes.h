//===- Passes.h - The model phase: what is trained --------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/Pass/Pass.h"

namespace fsdpq {

#define GEN_PASS_DECL
#include "compiler/Model/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/Model/Passes.h.inc"

} // namespace fsdpq
