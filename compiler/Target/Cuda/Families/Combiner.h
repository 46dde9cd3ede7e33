//===- Combiner.h - Reductions in any order ---------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>
#include <string>

namespace fsdpq::cuda {

/// One result of a reduction whose terms may be combined in any order.
struct Combiner {
  mlir::Operation *op; ///< combines the sum with a term
  mlir::BlockArgument sum;
  mlir::Value term;     ///< does not depend on sums
  std::string identity; ///< leaves what it is combined with as it is
};

/// For each result; nothing if one is not of this kind or its flags keep the
/// order.
std::optional<mlir::SmallVector<Combiner>>
getCombiners(mlir::linalg::GenericOp op);

} // namespace fsdpq::cuda
