//===- Elements.h - Element types of storage and of sums --------*- C++ -*-===//
#pragma once

#include "mlir/IR/BuiltinTypes.h"

namespace fsdpq {

/// The type in which values of a floating point element type are computed and
/// summed up: f32 for bf16, which is a type of storage only, else the type itself.
inline mlir::Type getComputeType(mlir::Type element) {
  return element.isBF16() ? mlir::Float32Type::get(element.getContext())
                          : element;
}

} // namespace fsdpq
