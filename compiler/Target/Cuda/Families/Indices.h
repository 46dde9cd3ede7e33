//===- Indices.h - What is known of the indices of accesses -----*- C++ -*-===//
#pragma once

#include "dialects/Kern/Kern.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/MapVector.h"

namespace fsdpq::cuda {

/// A sum of multiples of values and a constant.
struct Linear {
  llvm::MapVector<Value, int64_t> terms;
  int64_t constant = 0;

  static Linear of(Value index);
  /// The difference, if it is a constant.
  std::optional<int64_t> minus(const Linear &other) const;
};

/// A number that divides the value; 0 if that is 0.
int64_t getKnownDivisor(Value index);

/// Elements between neighbours of each dimension.
SmallVector<int64_t> getStrides(MemRefType type);

/// A touch of a memref by a kernel: a tile, or one element (a tile of shape
/// {}).
struct Access {
  Operation *op;
  Value memref;
  OperandRange indices;
  ArrayRef<int64_t> shape;
  bool isWrite;

  /// Nothing if `op` touches no memref.
  static std::optional<Access> of(Operation *op);

  MemRefType getType() const { return cast<MemRefType>(memref.getType()); }
  /// Elements touched in dimension `dim` of the memref.
  int64_t getSize(unsigned dim) const;
  /// Whether the elements of the tile lie one after the other.
  bool isContiguous() const;
  /// The largest power of two, at most `limit`, such that pieces of so many
  /// elements are aligned if the memref's begin is.
  int64_t getAlignment(int64_t limit) const;
};

/// All touches in `root`, in program order.
SmallVector<Access> getAccesses(Operation *root);

/// Whether two touches of one memref surely have no element in common, where
/// both see the same values of all indices.
bool areDisjoint(const Access &a, const Access &b);

/// The same for different iterations of `loop`, which both are in.
bool areDisjointAcross(scf::ForOp loop, const Access &a, const Access &b);

/// Whether each of the touches' tiles begins at the same place in the last
/// dimension and has the same shape: element n of one can only be element n of
/// the other. With `loop` also in different iterations of it.
bool areElementwise(const Access &a, const Access &b, scf::ForOp loop = {});

/// Iterations of a loop with constant bounds.
std::optional<int64_t> getTripCount(scf::ForOp loop);

} // namespace fsdpq::cuda
