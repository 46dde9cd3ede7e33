//===- Kern.h - Kernel functions --------------------------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Kern/KernDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kern/KernAttrs.h.inc"

namespace fsdpq::kern {
/// What an extent names the number of its layer by; see #kern.extent.
inline constexpr llvm::StringLiteral layerScalar = "layer";
} // namespace fsdpq::kern

#define GET_OP_CLASSES
#include "dialects/Kern/KernOps.h.inc"
