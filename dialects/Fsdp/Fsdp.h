//===- Fsdp.h - Sharded parameters: where and when --------------*- C++ -*-===//
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

namespace fsdpq::fsdp {
/// What collectives write, so that none is merged, dropped or reordered.
struct CommResource : public SideEffects::Resource::Base<CommResource> {
  StringRef getName() final { return "fsdp.comm"; }
};

/// Units are padded to this many bytes for each rank.
constexpr int64_t shardAlignment = 256;
} // namespace fsdpq::fsdp

#include "dialects/Fsdp/FsdpDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Fsdp/FsdpAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Fsdp/FsdpTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Fsdp/FsdpOps.h.inc"
