//===- Passes.h - Passes of the CPU target ----------------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"

namespace fsdpq::cpu {

/// Dialects, and bufferization models of their ops, that kern-to-llvm needs.
void registerCpuDialects(DialectRegistry &registry);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Target/Cpu/Passes.h.inc"

} // namespace fsdpq::cpu
