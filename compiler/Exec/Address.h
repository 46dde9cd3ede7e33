//===- Address.h - Where a slice lies ---------------------------*- C++ -*-===//
#pragma once

#include "dialects/Exec/Exec.h"

namespace fsdpq {

/// A chain of subslices down to its arena, folded into one range.
struct Address {
  StringRef name, arena;
  int64_t offset = 0, bytes = 0, stride = 0, level = 0;
  ArrayRef<int64_t> table;
  StringRef unit; ///< whose parameters are expected there, or empty
  ArrayRef<int64_t> ordinals;

  /// First byte at the given indices (`indices[level]`).
  int64_t at(ArrayRef<int64_t> indices) const {
    if (!table.empty())
      return offset + table[indices[level]];
    return offset + (stride ? stride * indices[level] : 0);
  }
};

/// `slice` must come from an exec.slice: temporaries have been placed.
inline Address getAddress(Value slice) {
  if (auto op = slice.getDefiningOp<exec::SliceOp>())
    return {op.getName(),
            op.getArena(),
            (int64_t)op.getOffset(),
            (int64_t)op.getBytes(),
            (int64_t)op.getStride(),
            (int64_t)op.getLevel(),
            op.getTable().value_or(ArrayRef<int64_t>()),
            op.getUnit().value_or(StringRef()),
            op.getOrdinals().value_or(ArrayRef<int64_t>())};
  auto op = slice.getDefiningOp<exec::SubsliceOp>();
  Address address = getAddress(op.getSource());
  address.offset += op.getOffset();
  address.bytes = op.getBytes();
  if (op.getStride() || op.getTable()) {
    address.stride = op.getStride();
    address.level = op.getLevel();
    address.table = op.getTable().value_or(ArrayRef<int64_t>());
  }
  if (op.getUnit()) {
    address.unit = *op.getUnit();
    address.ordinals = *op.getOrdinals();
    // Ordinals change with the same index as addresses, if both do.
    if (address.ordinals.size() > 1)
      address.level = op.getLevel();
  }
  return address;
}

} // namespace fsdpq
