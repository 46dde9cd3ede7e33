//===- Tfm.h - Transformers: what is computed -------------------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "dialects/Tfm/Gradient.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Tfm/TfmDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Tfm/TfmAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Tfm/TfmTypes.h.inc"

#include "dialects/Tfm/TfmInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Tfm/TfmOps.h.inc"

namespace fsdpq::tfm {

/// Names of the sizes that stay run-time values after tfm-bind-config.
/// T: tokens of the micro-batch; R: its labelled rows; C: rows of one chunk of R.
constexpr StringLiteral tokensDim = "T", labelsDim = "R", chunkDim = "C";
inline bool isRuntimeDim(StringRef name) {
  return name == tokensDim || name == labelsDim || name == chunkDim;
}

/// The size expression of dimension `dim`, "" when it is plainly static.
StringRef getDimName(RankedTensorType type, int64_t dim);

/// A tensor type from sizes and their names; no encoding if all names are empty.
RankedTensorType getNamedType(MLIRContext *context, ArrayRef<int64_t> shape,
                              ArrayRef<StringRef> names, Type elementType);

/// The value of an attribute that tfm-bind-config has bound.
int64_t getBoundInt(Attribute attribute);
double getBoundFloat(Attribute attribute);

/// Columns of one head of `tfm.attention`.
int64_t getHeadDim(AttentionOp op);
int64_t getHeadDim(AttentionGradOp op);

} // namespace fsdpq::tfm
