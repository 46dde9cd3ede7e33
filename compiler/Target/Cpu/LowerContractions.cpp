//===- LowerContractions.cpp - Matrix products in registers ---------------===//
//
// C[i, j] += A[i, r] * B[r, j], whatever the order in which the operands store
// their dimensions. The lanes of a vector are consecutive j, the innermost
// dimension of C. A register tile of C is loaded, summed up over all r in
// ascending order and stored. Elements of A are broadcast. A B that is not
// contiguous along j is transposed panel by panel.
//
// Sums over r are neither split nor reordered, and a multiply and an add become
// one fma only where both carry `contract`: the same arithmetic as the loops.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cpu/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fsdpq;

namespace {

struct Contraction {
  linalg::GenericOp op;
  unsigned i, j, r; ///< loop dimensions
  OpOperand *rows;  ///< A
  OpOperand *lanes; ///< B
  arith::MulFOp multiply;
  arith::AddFOp add;
  int64_t sizeI, sizeJ, sizeR;
};

/// Emits one contraction.
class Emitter {
public:
  Emitter(Contraction &contraction, const cpu::LoweringOptions &options);
  void emit();

private:
  void emitPanel(Value j, int64_t width);
  void emitTile(Value i, Value j, int64_t rows, int64_t width);
  Value packPanel(Value j, int64_t width);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value offset(Value base, int64_t by) {
    return by ? arith::AddIOp::create(builder, loc, base, index(by)) : base;
  }
  /// The places of `operand`'s element at these loop indices.
  SmallVector<Value> indicesOf(OpOperand *operand, Value i, Value j, Value r);
  Value load(Value memref, ValueRange indices, int64_t count);
  void store(Value value, Value memref, ValueRange indices, int64_t count);
  Value getMask(int64_t count);

  Contraction &c;
  OpBuilder builder;
  Location loc;
  Type element;
  int64_t lanes, tileRows, tileWidth;
  bool isPacked;
  Value buffer; ///< holds the transposed panel of B
  Value panel;  ///< B as [r, j - panel begin], if packed
  Value panelBegin;
};

} // namespace

/// The contraction that `op` is, if it is one with static sizes.
static std::optional<Contraction> matchContraction(linalg::GenericOp op) {
  if (op.getNumLoops() != 3 || op.getNumReductionLoops() != 1 ||
      op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      !op.hasPureBufferSemantics())
    return std::nullopt;
  for (AffineMap map : op.getIndexingMapsArray())
    if (map.getNumResults() != 2 || !map.isProjectedPermutation())
      return std::nullopt;

  Contraction c;
  c.op = op;
  OpOperand *output = op.getDpsInitOperand(0);
  AffineMap outputMap = op.getMatchingIndexingMap(output);
  c.i = outputMap.getDimPosition(0);
  c.j = outputMap.getDimPosition(1);
  c.r = 3 - c.i - c.j;
  if (!cpu::hasUnitStride(output->get()) ||
      op.getIteratorTypesArray()[c.r] != utils::IteratorType::reduction)
    return std::nullopt;
  c.rows = op.getDpsInputOperand(0);
  c.lanes = op.getDpsInputOperand(1);
  auto uses = [&](OpOperand *operand, unsigned dim) {
    return op.getMatchingIndexingMap(operand).isFunctionOfDim(dim);
  };
  if (uses(c.rows, c.j))
    std::swap(c.rows, c.lanes);
  if (!uses(c.rows, c.i) || !uses(c.rows, c.r) || !uses(c.lanes, c.r) ||
      !uses(c.lanes, c.j))
    return std::nullopt;

  // yield(add(output, mul(input, input)))
  Block *body = op.getBlock();
  if (body->getOperations().size() != 3)
    return std::nullopt;
  c.multiply = dyn_cast<arith::MulFOp>(body->front());
  c.add = dyn_cast<arith::AddFOp>(*std::next(body->begin()));
  if (!c.multiply || !c.add || body->getTerminator()->getOperand(0) != c.add)
    return std::nullopt;
  SmallVector<Value> factors = c.multiply->getOperands();
  SmallVector<Value> terms = c.add->getOperands();
  if (!llvm::is_contained(factors, body->getArgument(0)) ||
      !llvm::is_contained(factors, body->getArgument(1)) ||
      !llvm::is_contained(terms, body->getArgument(2)) ||
      !llvm::is_contained(terms, c.multiply.getResult()))
    return std::nullopt;

  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  if (llvm::any_of(sizes, ShapedType::isDynamic))
    return std::nullopt;
  c.sizeI = sizes[c.i];
  c.sizeJ = sizes[c.j];
  c.sizeR = sizes[c.r];
  return c;
}

Emitter::Emitter(Contraction &contraction, const cpu::LoweringOptions &options)
    : c(contraction), builder(contraction.op), loc(contraction.op.getLoc()) {
  element = c.multiply.getType();
  lanes = options.vectorBits / element.getIntOrFloatBitWidth();
  tileRows = options.tileRows;
  tileWidth = lanes * options.tileVectors;
  AffineMap map = c.op.getMatchingIndexingMap(c.lanes);
  isPacked =
      map.getDimPosition(1) != c.j || !cpu::hasUnitStride(c.lanes->get());
}

SmallVector<Value> Emitter::indicesOf(OpOperand *operand, Value i, Value j,
                                      Value r) {
  AffineMap map = c.op.getMatchingIndexingMap(operand);
  SmallVector<Value> indices;
  for (unsigned result = 0; result < 2; ++result) {
    unsigned dim = map.getDimPosition(result);
    indices.push_back(dim == c.i ? i : dim == c.j ? j : r);
  }
  return indices;
}

Value Emitter::getMask(int64_t count) {
  SmallVector<bool> bits(lanes);
  std::fill_n(bits.begin(), count, true);
  auto type = VectorType::get(lanes, builder.getI1Type());
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, bits));
}

Value Emitter::load(Value memref, ValueRange indices, int64_t count) {
  auto type = VectorType::get(lanes, element);
  if (count == lanes)
    return vector::LoadOp::create(builder, loc, type, memref, indices);
  Value zero =
      arith::ConstantOp::create(builder, loc, type, builder.getZeroAttr(type));
  return vector::MaskedLoadOp::create(builder, loc, type, memref, indices,
                                      getMask(count), zero);
}

void Emitter::store(Value value, Value memref, ValueRange indices,
                    int64_t count) {
  if (count == lanes)
    vector::StoreOp::create(builder, loc, value, memref, indices);
  else
    vector::MaskedStoreOp::create(builder, loc, memref, indices, getMask(count),
                                  value);
}

void Emitter::emitTile(Value i, Value j, int64_t rows, int64_t width) {
  OpOperand *output = c.op.getDpsInitOperand(0);
  int64_t vectors = llvm::divideCeil(width, lanes);
  auto lanesOf = [&](int64_t v) { return std::min(lanes, width - v * lanes); };

  SmallVector<Value> sums;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t v = 0; v < vectors; ++v)
      sums.push_back(
          load(output->get(),
               indicesOf(output, offset(i, row), offset(j, v * lanes), {}),
               lanesOf(v)));

  auto loop = scf::ForOp::create(builder, loc, index(0), index(c.sizeR),
                                 index(1), sums);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value r = loop.getInductionVar();
    SmallVector<Value> columns;
    for (int64_t v = 0; v < vectors; ++v) {
      if (isPacked) {
        Value column = arith::SubIOp::create(builder, loc, j, panelBegin);
        columns.push_back(
            load(panel, {r, offset(column, v * lanes)}, lanesOf(v)));
      } else {
        columns.push_back(load(c.lanes->get(),
                               indicesOf(c.lanes, {}, offset(j, v * lanes), r),
                               lanesOf(v)));
      }
    }
    SmallVector<Value> next;
    auto type = VectorType::get(lanes, element);
    for (int64_t row = 0; row < rows; ++row) {
      Value scalar =
          memref::LoadOp::create(builder, loc, c.rows->get(),
                                 indicesOf(c.rows, offset(i, row), {}, r));
      Value factor = vector::BroadcastOp::create(builder, loc, type, scalar);
      for (int64_t v = 0; v < vectors; ++v) {
        Value product = arith::MulFOp::create(builder, loc, factor, columns[v],
                                              c.multiply.getFastmath());
        next.push_back(arith::AddFOp::create(
            builder, loc, loop.getRegionIterArg(row * vectors + v), product,
            c.add.getFastmath()));
      }
    }
    scf::YieldOp::create(builder, loc, next);
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t v = 0; v < vectors; ++v)
      store(loop.getResult(row * vectors + v), output->get(),
            indicesOf(output, offset(i, row), offset(j, v * lanes), {}),
            lanesOf(v));
}

/// B's columns [j, j + width) as a contiguous [r, width] buffer.
Value Emitter::packPanel(Value j, int64_t width) {
  AffineMap map = c.op.getMatchingIndexingMap(c.lanes);
  bool rowsAreJ = map.getDimPosition(0) == c.j;
  SmallVector<OpFoldResult> offsets = {builder.getIndexAttr(0),
                                       builder.getIndexAttr(0)};
  SmallVector<OpFoldResult> sizes = {builder.getIndexAttr(c.sizeR),
                                     builder.getIndexAttr(c.sizeR)};
  SmallVector<OpFoldResult> ones(2, builder.getIndexAttr(1));
  offsets[rowsAreJ ? 0 : 1] = getAsOpFoldResult(j);
  sizes[rowsAreJ ? 0 : 1] = builder.getIndexAttr(width);
  Value source = memref::SubViewOp::create(builder, loc, c.lanes->get(),
                                           offsets, sizes, ones);
  Value dest = memref::SubViewOp::create(
      builder, loc, buffer,
      ArrayRef<OpFoldResult>{builder.getIndexAttr(0), builder.getIndexAttr(0)},
      ArrayRef<OpFoldResult>{builder.getIndexAttr(c.sizeR),
                             builder.getIndexAttr(width)},
      ones);
  AffineMap identity = builder.getMultiDimIdentityMap(2);
  AffineMap swapped = AffineMap::getPermutationMap(ArrayRef<unsigned>{1, 0},
                                                   builder.getContext());
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  linalg::GenericOp::create(
      builder, loc, source, dest,
      ArrayRef<AffineMap>{rowsAreJ ? swapped : identity, identity}, iterators,
      [](OpBuilder &nested, Location loc, ValueRange arguments) {
        linalg::YieldOp::create(nested, loc, arguments.front());
      });
  return dest;
}

void Emitter::emitPanel(Value j, int64_t width) {
  if (isPacked) {
    panelBegin = j;
    panel = packPanel(j, width);
  }
  int64_t whole = c.sizeI - c.sizeI % tileRows;
  if (whole) {
    auto loop = scf::ForOp::create(builder, loc, index(0), index(whole),
                                   index(tileRows));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    emitTile(loop.getInductionVar(), j, tileRows, width);
  }
  if (whole != c.sizeI)
    emitTile(index(whole), j, c.sizeI - whole, width);
}

void Emitter::emit() {
  if (isPacked)
    buffer = memref::AllocOp::create(
        builder, loc,
        MemRefType::get({c.sizeR, std::min(tileWidth, c.sizeJ)}, element),
        builder.getI64IntegerAttr(64));
  int64_t whole = c.sizeJ - c.sizeJ % tileWidth;
  if (whole) {
    auto loop = scf::ForOp::create(builder, loc, index(0), index(whole),
                                   index(tileWidth));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    emitPanel(loop.getInductionVar(), tileWidth);
  }
  if (whole != c.sizeJ)
    emitPanel(index(whole), c.sizeJ - whole);
  c.op.erase();
}

void cpu::lowerContractions(func::FuncOp function,
                            const LoweringOptions &options) {
  SmallVector<Contraction> contractions;
  function.walk([&](linalg::GenericOp op) {
    if (std::optional<Contraction> contraction = matchContraction(op))
      contractions.push_back(*contraction);
  });
  for (Contraction &contraction : contractions)
    Emitter(contraction, options).emit();
}
