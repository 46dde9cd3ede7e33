//===- JoinLinears.h - Several products of one value as one -----*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/IR/PatternMatch.h"

namespace fsdpq {

/// Joins the linear layers (with or without adapter) that produce `outputs`
/// into one, whose result has their columns side by side. Fails, with a reason
/// for the rewriter's listener, unless all of them read the same value, have
/// weights of the same type that are parameters, adapters of equal rank and
/// scale, and `outputs` have no use but `consumer`s.
FailureOr<Value> joinLinears(ArrayRef<Value> outputs, Operation *anchor,
                             PatternRewriter &rewriter);

} // namespace fsdpq
