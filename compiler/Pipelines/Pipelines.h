//===- Pipelines.h - The phases as pass pipelines ---------------*- C++ -*-===//
#pragma once

#include "compiler/Pipelines/Compile.h"
#include "mlir/Pass/PassManager.h"

namespace fsdpq {

/// Appends the passes of one phase (model, grad, shard, fuse, kernel, exec). Each
/// phase ends in a pass that verifies it.
void buildPhase(mlir::OpPassManager &manager, llvm::StringRef phase,
                const CompileOptions &options);

/// Whether the options ask for a program that trains.
bool trains(const CompileOptions &options);

/// Registers fsdpq-<phase> for each phase and fsdpq-compile for all of them,
/// with the options a researcher varies.
void registerPipelines();

} // namespace fsdpq
