//===- Passes.h - The shard phase: where and when ---------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/Pass/Pass.h"

namespace fsdpq {

#define GEN_PASS_DECL
#include "compiler/Shard/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/Shard/Passes.h.inc"

} // namespace fsdpq
