//===- AttentionParts.h - What attention and its gradient share -*- C++ -*-===//
//
// Tiles are attentionTile rows of one head. Matrices whose lanes (the last
// dimension) are rows of the activations are called transposed: t in names.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Kernel/Bodies/BodyBuilder.h"

#include "dialects/Support/Elements.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fsdpq::kernels {

/// A matrix with heads side by side, and the first column of head 0.
struct HeadColumns {
  Value memref;
  int64_t begin = 0;
};

class AttentionBody : public BodyBuilder {
public:
  /// Arguments are those of q, k, v (one if packed), then `others`.
  AttentionBody(OpBuilder &outer, Location loc, const Twine &name,
                const AttentionShape &shape, TypeRange others);

  /// The n-th of the arguments after q, k and v.
  Value other(unsigned n) { return argument((shape.packed ? 1 : 3) + n); }

  HeadColumns query() { return columnsOf(0); }
  HeadColumns key() { return columnsOf(1); }
  HeadColumns value() { return columnsOf(2); }
  /// The columns of q (0), k (1) or v (2) in a packed matrix.
  int64_t packedBegin(unsigned part);

  /// Rows [row, row + tile) of a head: tile x headDim.
  Value loadHead(HeadColumns columns, Value row, Value head);
  void storeHead(Value tile, HeadColumns columns, Value row, Value head);
  /// Rows of one column of a matrix `? x heads`, as a one-dimensional tile.
  Value loadColumn(Value memref, Value row, Value head);

  /// The first row that each of the tile's queries sees, as i32.
  Value firstVisible(Value segments, Value row);

  const AttentionShape &shape;

private:
  HeadColumns columnsOf(unsigned part);
};

/// Types of q, k and v as arguments.
SmallVector<Type> getQkvTypes(const AttentionShape &shape);

} // namespace fsdpq::kernels
