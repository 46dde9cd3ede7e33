//===- CodeGenerator.h - LLVM dialect to machine code -----------*- C++ -*-===//
#pragma once

#include "compiler/Target/Cpu/ObjectCompiler.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

namespace fsdpq::cpu {

/// Translations to LLVM IR of the dialects that `generateObject` meets.
void registerTranslations(DialectRegistry &registry);

/// Whether `features` has `feature` switched on.
bool hasFeature(const TargetMachineOptions &target, StringRef feature);

/// Optimises a module of the LLVM dialect (-O3) and makes an object of it.
/// Errors are reported at `module`.
FailureOr<std::vector<uint8_t>>
generateObject(ModuleOp module, const TargetMachineOptions &target);

} // namespace fsdpq::cpu
