//===- Registration.h - All dialects, passes and pipelines ------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fsdpq {

/// fsdpq's dialects and the upstream ones that its passes produce.
void registerCompilerDialects(DialectRegistry &registry);

/// These and all other upstream dialects and extensions, for fsdpq-opt.
void registerAllDialects(DialectRegistry &registry);

/// Every pass of every phase, and the pipelines named in Pipelines.h.
void registerAllPasses();

} // namespace fsdpq
