//===- BodyBuilder.cpp - Shorthand to write kernel bodies -----------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"

#include "dialects/Support/Elements.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

#include <numeric>

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;
using arith::FastMathFlags;

MemRefType kernels::rowsOf(Type element, std::optional<int64_t> columns) {
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  if (columns)
    shape.push_back(*columns);
  return MemRefType::get(shape, element);
}

MemRefType kernels::arrayOf(Type element, ArrayRef<int64_t> shape) {
  return MemRefType::get(shape, element);
}

int64_t kernels::flatItemSize(int64_t elements) {
  return std::gcd(elements, flatTile);
}

int64_t kernels::columnTile(int64_t columns) {
  // One cache line or more a row, and enough items for the threads.
  int64_t best = 1;
  for (int64_t size = 2; size <= std::min<int64_t>(columns, 64); ++size)
    if (columns % size == 0)
      best = size;
  int64_t size = std::min<int64_t>(columns, 16);
  if (best < size)
    for (best = size; columns % best;)
      ++best;
  return best;
}

StringRef kernels::nameOf(Type element) {
  return element.isF64() ? "f64" : element.isBF16() ? "bf16" : "f32";
}

BodyBuilder::BodyBuilder(OpBuilder &outer, Location loc, const Twine &name,
                         TypeRange arguments, Type element)
    : ImplicitLocOpBuilder(loc, outer.getContext()),
      element(getComputeType(element)) {
  outer.getContext()
      ->loadDialect<arith::ArithDialect, linalg::LinalgDialect,
                    math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                    tensor::TensorDialect>();
  kernel = kern::FuncOp::create(outer, loc, name.str(), arguments);
  setInsertionPoint(kernel.getBody().front().getTerminator());
}

//===----------------------------------------------------------------------===//
// Constants and arithmetic
//===----------------------------------------------------------------------===//

Value BodyBuilder::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}

Value BodyBuilder::i32(int64_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
}

Value BodyBuilder::constant(Type type, double value) {
  return arith::ConstantOp::create(*this, getFloatAttr(type, value));
}

Value BodyBuilder::add(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::AddFOp::create(*this, a, b, flags);
  return arith::AddIOp::create(*this, a, b);
}

Value BodyBuilder::sub(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::SubFOp::create(*this, a, b, flags);
  return arith::SubIOp::create(*this, a, b);
}

Value BodyBuilder::mul(Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::MulFOp::create(*this, a, b, flags);
  return arith::MulIOp::create(*this, a, b);
}

Value BodyBuilder::div(Value a, Value b) {
  return arith::DivFOp::create(*this, a, b);
}

Value BodyBuilder::negate(Value a) { return arith::NegFOp::create(*this, a); }
Value BodyBuilder::exp(Value a) { return math::ExpOp::create(*this, a); }
Value BodyBuilder::absolute(Value a) { return math::AbsFOp::create(*this, a); }

Value BodyBuilder::sumStep(Value sum, Value term) {
  return arith::AddFOp::create(*this, sum, term,
                               flags | FastMathFlags::reassoc);
}

Value BodyBuilder::maxStep(Value max, Value term) {
  return arith::MaximumFOp::create(*this, max, term,
                                   FastMathFlags::nsz | FastMathFlags::reassoc);
}

Value BodyBuilder::quotient(Value a, Value b) {
  return arith::DivUIOp::create(*this, a, b);
}

Value BodyBuilder::remainder(Value a, Value b) {
  return arith::RemUIOp::create(*this, a, b);
}

Value BodyBuilder::maxIndex(Value a, Value b) {
  return arith::MaxSIOp::create(*this, a, b);
}

Value BodyBuilder::compare(arith::CmpFPredicate predicate, Value a, Value b) {
  return arith::CmpFOp::create(*this, predicate, a, b);
}

Value BodyBuilder::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(*this, predicate, a, b);
}

Value BodyBuilder::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(*this, condition, a, b);
}

Value BodyBuilder::toIndex(Value integer) {
  return arith::IndexCastOp::create(*this, getIndexType(), integer);
}

Value BodyBuilder::toI32(Value index) {
  return arith::IndexCastOp::create(*this, getI32Type(), index);
}

Value BodyBuilder::toFloat(Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtFOp::create(*this, type, value);
  if (from > to)
    return arith::TruncFOp::create(*this, type, value);
  return value;
}

Value BodyBuilder::lookUp(Value index, ArrayRef<float> table) {
  auto type = RankedTensorType::get(table.size(), getF32Type());
  return kern::LookupOp::create(*this, getF32Type(), index,
                                DenseElementsAttr::get(type, table));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Type elementOf(Value memref) {
  return cast<MemRefType>(memref.getType()).getElementType();
}

Value BodyBuilder::convert(Value tile, Type type) {
  if (cast<RankedTensorType>(tile.getType()).getElementType() == type)
    return tile;
  return mapAll(tile, type, [&](ValueRange v) {
    return SmallVector<Value>{toFloat(v[0], type)};
  })[0];
}

static SmallVector<Value> completeIndices(BodyBuilder &b, Value memref,
                                          ValueRange indices) {
  SmallVector<Value> all(indices);
  while (int64_t(all.size()) < cast<MemRefType>(memref.getType()).getRank())
    all.push_back(b.index(0));
  return all;
}

Value BodyBuilder::load(Value memref, ValueRange indices,
                        ArrayRef<int64_t> shape) {
  Type type = elementOf(memref);
  Value tile =
      kern::LoadOp::create(*this, RankedTensorType::get(shape, type), memref,
                           completeIndices(*this, memref, indices));
  return convert(tile, getComputeType(type));
}

void BodyBuilder::store(Value tile, Value memref, ValueRange indices) {
  kern::StoreOp::create(*this, convert(tile, elementOf(memref)), memref,
                        completeIndices(*this, memref, indices));
}

void BodyBuilder::copy(Value source, ValueRange from, Value dest, ValueRange to,
                       ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, elementOf(source));
  Value tile = kern::LoadOp::create(*this, type, source,
                                    completeIndices(*this, source, from));
  kern::StoreOp::create(*this, tile, dest, completeIndices(*this, dest, to));
}

Value BodyBuilder::loadScalar(Value memref, ValueRange indices) {
  Value value = memref::LoadOp::create(*this, memref, indices);
  return value.getType().isBF16() ? toFloat(value, getF32Type()) : value;
}

void BodyBuilder::storeScalar(Value value, Value memref, ValueRange indices) {
  if (elementOf(memref).isBF16())
    value = toFloat(value, elementOf(memref));
  memref::StoreOp::create(*this, value, memref, indices);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static RankedTensorType typeOf(Value tile) {
  return cast<RankedTensorType>(tile.getType());
}

Value BodyBuilder::empty(ArrayRef<int64_t> shape, Type type) {
  return tensor::EmptyOp::create(*this, shape, type);
}

Value BodyBuilder::fill(ArrayRef<int64_t> shape, Value value) {
  Value tile = empty(shape, value.getType());
  return linalg::FillOp::create(*this, value, tile).getResult(0);
}

Value BodyBuilder::transpose(Value matrix) {
  ArrayRef<int64_t> shape = typeOf(matrix).getShape();
  Value tile = empty({shape[1], shape[0]}, typeOf(matrix).getElementType());
  return linalg::TransposeOp::create(*this, matrix, tile,
                                     ArrayRef<int64_t>{1, 0})
      ->getResult(0);
}

Value BodyBuilder::reshape(Value tile, ArrayRef<int64_t> shape) {
  RankedTensorType from = typeOf(tile);
  auto to = RankedTensorType::get(shape, from.getElementType());
  if (from == to)
    return tile;
  auto groups = *getReassociationIndicesForReshape(from, to);
  if (to.getRank() > from.getRank())
    return tensor::ExpandShapeOp::create(*this, to, tile, groups);
  return tensor::CollapseShapeOp::create(*this, to, tile, groups);
}

Value BodyBuilder::extract(Value tile, ValueRange indices) {
  return tensor::ExtractOp::create(*this, tile, indices);
}

SmallVector<Value> BodyBuilder::generic(ArrayRef<Access> inputs,
                                        ArrayRef<Access> outputs,
                                        Payload payload) {
  SmallVector<Value> ins, outs;
  SmallVector<Type> types;
  SmallVector<AffineMap> maps;
  for (const Access &input : inputs) {
    ins.push_back(input.tile);
    maps.push_back(input.map);
  }
  for (const Access &output : outputs) {
    outs.push_back(output.tile);
    types.push_back(output.tile.getType());
    maps.push_back(output.map);
  }
  SmallVector<utils::IteratorType> iterators;
  for (unsigned dim = 0; dim < maps.front().getNumDims(); ++dim)
    iterators.push_back(outputs.front().map.isFunctionOfDim(dim)
                            ? utils::IteratorType::parallel
                            : utils::IteratorType::reduction);
  auto op = linalg::GenericOp::create(
      *this, types, ins, outs, maps, iterators,
      [&](OpBuilder &nested, Location, ValueRange arguments) {
        InsertionGuard guard(*this);
        setInsertionPoint(nested.getInsertionBlock(),
                          nested.getInsertionPoint());
        linalg::YieldOp::create(*this, payload(arguments));
      });
  return SmallVector<Value>(op.getResults());
}

SmallVector<Value> BodyBuilder::mapAll(ValueRange tiles, TypeRange types,
                                       Payload payload) {
  ArrayRef<int64_t> shape = typeOf(tiles.front()).getShape();
  AffineMap identity = getMultiDimIdentityMap(shape.size());
  SmallVector<Access> inputs, outputs;
  for (Value tile : tiles)
    inputs.push_back({tile, identity});
  for (Type type : types)
    outputs.push_back({empty(shape, type), identity});
  return generic(inputs, outputs, [&](ValueRange arguments) {
    return payload(arguments.take_front(tiles.size()));
  });
}

Value BodyBuilder::map(ValueRange tiles,
                       llvm::function_ref<Value(ValueRange)> payload) {
  return mapAll(tiles, element, [&](ValueRange arguments) {
    return SmallVector<Value>{payload(arguments)};
  })[0];
}

Value BodyBuilder::sum(ValueRange tiles, Type type,
                       llvm::function_ref<Value(ValueRange)> term) {
  SmallVector<Access> inputs;
  for (Value tile : tiles)
    inputs.push_back({tile, dims({0}, 1)});
  Value start = fill({}, constant(type, 0));
  Value total = generic(inputs, {{start, dims({}, 1)}}, [&](ValueRange values) {
    return SmallVector<Value>{sumStep(values.back(), term(values.drop_back()))};
  })[0];
  return extract(total);
}

Value BodyBuilder::max(Value tile, double start,
                       llvm::function_ref<Value(Value)> term) {
  Value lowest = fill({}, constant(typeOf(tile).getElementType(), start));
  Value largest = generic(
      {{tile, dims({0}, 1)}}, {{lowest, dims({}, 1)}}, [&](ValueRange values) {
        Value value = term ? term(values[0]) : values[0];
        return SmallVector<Value>{maxStep(values[1], value)};
      })[0];
  return extract(largest);
}

Value BodyBuilder::contract(Value a, ArrayRef<unsigned> dimsOfA, Value b,
                            ArrayRef<unsigned> dimsOfB, Value c) {
  return generic({{a, dims(dimsOfA, 3)}, {b, dims(dimsOfB, 3)}},
                 {{c, dims({0, 1}, 3)}}, [&](ValueRange values) {
                   Value product = mul(values[0], values[1]);
                   return SmallVector<Value>{add(values[2], product)};
                 })[0];
}

AffineMap BodyBuilder::dims(ArrayRef<unsigned> results, unsigned count) {
  SmallVector<AffineExpr> expressions;
  for (unsigned result : results)
    expressions.push_back(getAffineDimExpr(result));
  return AffineMap::get(count, 0, expressions, getContext());
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<Value> BodyBuilder::loop(Value begin, Value end, int64_t step,
                                     ValueRange carried, Body body) {
  auto op = scf::ForOp::create(*this, begin, end, index(step), carried);
  InsertionGuard guard(*this);
  setInsertionPointToStart(op.getBody());
  SmallVector<Value> next = body(op.getInductionVar(), op.getRegionIterArgs());
  if (!carried.empty()) // otherwise the terminator is there already
    scf::YieldOp::create(*this, next);
  return SmallVector<Value>(op.getResults());
}

void BodyBuilder::loop(Value begin, Value end, int64_t step,
                       llvm::function_ref<void(Value)> body) {
  loop(begin, end, step, {}, [&](Value index, ValueRange) {
    body(index);
    return SmallVector<Value>();
  });
}

SmallVector<Value> BodyBuilder::tiles(int64_t count, int64_t size,
                                      ValueRange carried, TileBody body) {
  SmallVector<Value> values(carried);
  int64_t whole = count - count % size;
  if (whole == size)
    values = body(index(0), size, values);
  else if (whole)
    values = loop(index(0), index(whole), size, values,
                  [&](Value begin, ValueRange carried) {
                    return body(begin, size, carried);
                  });
  if (whole != count)
    values = body(index(whole), count - whole, values);
  return values;
}

void BodyBuilder::tiles(int64_t count, int64_t size,
                        llvm::function_ref<void(Value, int64_t)> body) {
  tiles(count, size, {}, [&](Value begin, int64_t size, ValueRange) {
    body(begin, size);
    return SmallVector<Value>();
  });
}

void BodyBuilder::blockOf(Value block, int64_t count, int64_t size,
                          llvm::function_ref<void(int64_t)> body) {
  int64_t whole = count / size, rest = count % size;
  if (whole && rest)
    branch(
        compare(arith::CmpIPredicate::ult, block, index(whole)),
        [&] { body(size); }, [&] { body(rest); });
  else
    body(whole ? size : rest);
}

void BodyBuilder::branch(Value condition, llvm::function_ref<void()> then,
                         llvm::function_ref<void()> otherwise) {
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  then();
  setInsertionPointToStart(op.elseBlock());
  otherwise();
}
