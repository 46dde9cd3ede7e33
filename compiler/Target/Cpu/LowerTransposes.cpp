//===- LowerTransposes.cpp - Transpositions by vector shuffles ------------===//

#include "compiler/Target/Cpu/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fsdpq;

/// Whether `op` does nothing but store a matrix the other way round.
static bool isTransposition(linalg::GenericOp op) {
  if (op.getNumLoops() != 2 || op.getNumReductionLoops() != 0 ||
      op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 ||
      !op.hasPureBufferSemantics() || !llvm::hasSingleElement(*op.getBlock()))
    return false;
  if (op.getBlock()->getTerminator()->getOperand(0) !=
      op.getBlock()->getArgument(0))
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  return maps[0].isPermutation() && maps[1].isPermutation() &&
         maps[0] != maps[1] && cpu::hasUnitStride(op.getDpsInputs()[0]) &&
         cpu::hasUnitStride(op.getDpsInits()[0]);
}

/// Transposes a square of rows of as many lanes: after the stage of distance d,
/// rows r and r + d have exchanged the lanes whose number has, respectively has
/// not, bit d.
static void transpose(OpBuilder &builder, Location loc,
                      MutableArrayRef<Value> rows) {
  int64_t size = rows.size();
  for (int64_t distance = 1; distance < size; distance *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < size; ++lane) {
      bool isHigh = lane & distance;
      low.push_back(isHigh ? size + lane - distance : lane);
      high.push_back(isHigh ? size + lane : lane + distance);
    }
    for (int64_t row = 0; row < size; ++row) {
      if (row & distance)
        continue;
      Value first = rows[row], second = rows[row + distance];
      rows[row] = vector::ShuffleOp::create(builder, loc, first, second, low);
      rows[row + distance] =
          vector::ShuffleOp::create(builder, loc, first, second, high);
    }
  }
}

void cpu::lowerTransposes(func::FuncOp function,
                          const LoweringOptions &options) {
  SmallVector<linalg::GenericOp> ops;
  function.walk([&](linalg::GenericOp op) {
    if (isTransposition(op))
      ops.push_back(op);
  });
  for (linalg::GenericOp op : ops) {
    Value source = op.getDpsInputs()[0], dest = op.getDpsInits()[0];
    auto type = cast<MemRefType>(source.getType());
    int64_t block = options.vectorBits / type.getElementTypeBitWidth();
    while (block > 1 &&
           (type.getDimSize(0) % block || type.getDimSize(1) % block))
      block /= 2;
    if (!type.hasStaticShape() || block < 4)
      continue;

    Location loc = op.getLoc();
    OpBuilder builder(op);
    auto index = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    Value zero = index(0), step = index(block);
    auto outer =
        scf::ForOp::create(builder, loc, zero, index(type.getDimSize(0)), step);
    builder.setInsertionPointToStart(outer.getBody());
    auto inner =
        scf::ForOp::create(builder, loc, zero, index(type.getDimSize(1)), step);
    builder.setInsertionPointToStart(inner.getBody());
    Value i = outer.getInductionVar(), j = inner.getInductionVar();
    auto vectorType = VectorType::get(block, type.getElementType());
    SmallVector<Value> rows;
    for (int64_t k = 0; k < block; ++k) {
      Value row = arith::AddIOp::create(builder, loc, i, index(k));
      rows.push_back(vector::LoadOp::create(builder, loc, vectorType, source,
                                            ValueRange{row, j}));
    }
    transpose(builder, loc, rows);
    for (int64_t k = 0; k < block; ++k) {
      Value row = arith::AddIOp::create(builder, loc, j, index(k));
      vector::StoreOp::create(builder, loc, rows[k], dest, ValueRange{row, i});
    }
    op.erase();
  }
}
