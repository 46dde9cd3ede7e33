//===- Elementwise.cpp - Activations, sums, products ----------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"

#include "dialects/Support/Elements.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;

using Elementwise =
    llvm::function_ref<Value(BodyBuilder &b, ValueRange values)>;

/// (inputs: ? x columns, result: ? x columns). Items: rows.
static kern::FuncOp buildRowMap(OpBuilder &builder, Location loc,
                                const Twine &name, unsigned inputs,
                                int64_t columns, Type element,
                                Elementwise function) {
  SmallVector<Type> types(inputs + 1, rowsOf(element, columns));
  BodyBuilder b(builder, loc,
                name + "_" + Twine(columns) + "_" + nameOf(element), types,
                element);
  SmallVector<Value> tiles;
  for (unsigned input = 0; input < inputs; ++input)
    tiles.push_back(b.load(b.argument(input), b.item(), columns));
  Value result = b.map(tiles, [&](ValueRange v) { return function(b, v); });
  b.store(result, b.argument(inputs), b.item());
  return b.getKernel();
}

/// 1 + exp(-x): the reciprocal of the sigmoid. Infinite for very small x, where
/// quotients by it are the right zeros.
static Value inverseSigmoid(BodyBuilder &b, Value x) {
  return b.add(b.exp(b.negate(x)), b.constant(x.getType(), 1));
}

/// d silu(x) / dx = s (1 + x (1 - s)) with s the sigmoid.
static Value siluDerivative(BodyBuilder &b, Value x, Value sigmoid) {
  Value one = b.constant(x.getType(), 1);
  Value inner = b.add(one, b.mul(x, b.sub(one, sigmoid)));
  return b.mul(sigmoid, inner);
}

static Value sigmoid(BodyBuilder &b, Value x) {
  return b.div(b.constant(x.getType(), 1), inverseSigmoid(b, x));
}

kern::FuncOp kernels::buildSilu(OpBuilder &builder, Location loc,
                                int64_t columns, Type element) {
  return buildRowMap(builder, loc, "silu", 1, columns, element,
                     [](BodyBuilder &b, ValueRange v) {
                       return b.div(v[0], inverseSigmoid(b, v[0]));
                     });
}

kern::FuncOp kernels::buildSiluGrad(OpBuilder &builder, Location loc,
                                    int64_t columns, Type element) {
  return buildRowMap(builder, loc, "silu_grad", 2, columns, element,
                     [](BodyBuilder &b, ValueRange v) {
                       Value s = sigmoid(b, v[1]);
                       return b.mul(v[0], siluDerivative(b, v[1], s));
                     });
}

kern::FuncOp kernels::buildAdd(OpBuilder &builder, Location loc,
                               int64_t columns, Type element) {
  return buildRowMap(
      builder, loc, "add", 2, columns, element,
      [](BodyBuilder &b, ValueRange v) { return b.add(v[0], v[1]); });
}

kern::FuncOp kernels::buildMul(OpBuilder &builder, Location loc,
                               int64_t columns, Type element) {
  return buildRowMap(
      builder, loc, "mul", 2, columns, element,
      [](BodyBuilder &b, ValueRange v) { return b.mul(v[0], v[1]); });
}

kern::FuncOp kernels::buildScale(OpBuilder &builder, Location loc,
                                 int64_t columns, double factor, Type element) {
  return buildRowMap(builder, loc, "scale", 1, columns, element,
                     [=](BodyBuilder &b, ValueRange v) {
                       return b.mul(v[0], b.real(factor));
                     });
}

kern::FuncOp kernels::buildGatedSilu(OpBuilder &builder, Location loc,
                                     int64_t columns, bool packed,
                                     Type element) {
  SmallVector<Type> types;
  if (packed)
    types = {rowsOf(element, 2 * columns)};
  else
    types.assign(2, rowsOf(element, columns));
  types.push_back(rowsOf(element, columns));
  BodyBuilder b(builder, loc,
                Twine(packed ? "packed_gated_silu_" : "gated_silu_") +
                    Twine(columns) + "_" + nameOf(element),
                types, element);
  Value row = b.item();
  Value gate = b.load(b.argument(0), row, columns);
  Value up = packed ? b.load(b.argument(0), {row, b.index(columns)}, columns)
                    : b.load(b.argument(1), row, columns);
  Value y = b.map({gate, up}, [&](ValueRange v) {
    return b.mul(b.div(v[0], inverseSigmoid(b, v[0])), v[1]);
  });
  b.store(y, b.argument(types.size() - 1), row);
  return b.getKernel();
}

kern::FuncOp kernels::buildGatedSiluGrad(OpBuilder &builder, Location loc,
                                         int64_t columns, bool packed,
                                         Type element) {
  SmallVector<Type> types = {rowsOf(element, columns)};
  if (packed)
    types.append(2, rowsOf(element, 2 * columns));
  else
    types.append(4, rowsOf(element, columns));
  BodyBuilder b(builder, loc,
                Twine(packed ? "packed_gated_silu_grad_" : "gated_silu_grad_") +
                    Twine(columns) + "_" + nameOf(element),
                types, element);
  Value row = b.item();
  // Two results of one memref cannot both be computed in place; tiles bound
  // what the other one needs.
  b.tiles(columns, 512, [&](Value begin, int64_t size) {
    Value upBegin = packed ? b.add(begin, b.index(columns)) : begin;
    Value dy = b.load(b.argument(0), {row, begin}, size);
    Value gate = b.load(b.argument(1), {row, begin}, size);
    Value up = b.load(b.argument(packed ? 1 : 2), {row, upBegin}, size);
    auto results =
        b.mapAll({dy, gate, up}, {element, element}, [&](ValueRange v) {
          Value s = sigmoid(b, v[1]);
          Value dGate = b.mul(b.mul(v[0], v[2]), siluDerivative(b, v[1], s));
          Value dUp = b.mul(v[0], b.mul(v[1], s));
          return SmallVector<Value>{b.toFloat(dGate, element),
                                    b.toFloat(dUp, element)};
        });
    b.store(results[0], b.argument(packed ? 2 : 3), {row, begin});
    b.store(results[1], b.argument(packed ? 2 : 4), {row, upBegin});
  });
  return b.getKernel();
}

kern::FuncOp kernels::buildCast(OpBuilder &builder, Location loc,
                                int64_t width, Type from, Type to) {
  BodyBuilder b(builder, loc,
                "cast_t" + Twine(width) + "_" + nameOf(from) + "_" + nameOf(to),
                {rowsOf(from), rowsOf(to)}, from);
  Value begin = b.mul(b.item(), b.index(width));
  b.store(b.load(b.argument(0), begin, width), b.argument(1), begin);
  return b.getKernel();
}

kern::FuncOp kernels::buildSplat(OpBuilder &builder, Location loc,
                                 Type element) {
  BodyBuilder b(builder, loc, Twine("splat_") + nameOf(element),
                {rowsOf(element), builder.getF64Type()}, element);
  b.storeScalar(b.toElement(b.argument(1)), b.argument(0), b.item());
  return b.getKernel();
}

kern::FuncOp kernels::buildAccumulate(OpBuilder &builder, Location loc,
                                      int64_t elements, Type element) {
  MemRefType flat = arrayOf(element, elements);
  BodyBuilder b(builder, loc,
                "accumulate_" + Twine(elements) + "_" + nameOf(element),
                {flat, flat}, element);
  int64_t size = flatItemSize(elements);
  Value begin = b.mul(b.item(), b.index(size));
  Value src = b.load(b.argument(0), begin, size);
  Value dst = b.load(b.argument(1), begin, size);
  b.store(b.map({dst, src}, [&](ValueRange v) { return b.add(v[0], v[1]); }),
          b.argument(1), begin);
  return b.getKernel();
}
