//===- Rope.cpp - Rotary positions ----------------------------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"
#include "compiler/Kernel/Bodies/Families.h"

#include "dialects/Support/Elements.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;

kern::FuncOp kernels::buildRopeTable(OpBuilder &builder, Location loc,
                                     ArrayRef<double> frequencies,
                                     Type element) {
  int64_t half = frequencies.size();
  BodyBuilder b(
      builder, loc, "rope_table_" + Twine(2 * half) + "_" + nameOf(element),
      {rowsOf(builder.getI32Type()), rowsOf(element, 2 * half)}, element);
  SmallVector<Attribute> values;
  for (double frequency : frequencies)
    values.push_back(b.getFloatAttr(element, frequency));
  Value frequency = arith::ConstantOp::create(
      b, DenseElementsAttr::get(RankedTensorType::get(half, element), values));
  Value row = b.item();
  Value position =
      arith::SIToFPOp::create(b, element, b.loadScalar(b.argument(0), row));
  // Two loops, so that each calls one function of libm.
  Value cosines = b.map(frequency, [&](ValueRange v) -> Value {
    return math::CosOp::create(b, b.mul(position, v[0]));
  });
  Value sines = b.map(frequency, [&](ValueRange v) -> Value {
    return math::SinOp::create(b, b.mul(position, v[0]));
  });
  b.store(cosines, b.argument(1), row);
  b.store(sines, b.argument(1), {row, b.index(half)});
  return b.getKernel();
}

kern::FuncOp kernels::buildRope(OpBuilder &builder, Location loc,
                                int64_t columns, int64_t headDim, int64_t heads,
                                bool inverse, Type element) {
  BodyBuilder b(builder, loc,
                Twine(inverse ? "rope_inverse_" : "rope_") + Twine(columns) +
                    "_" + Twine(heads) + "x" + Twine(headDim) + "_" +
                    nameOf(element),
                {rowsOf(getComputeType(element), headDim),
                 rowsOf(element, columns)},
                element);
  Value row = b.item(), table = b.argument(0), x = b.argument(1);
  int64_t half = headDim / 2;
  Value cosines = b.load(table, row, half);
  Value sines = b.load(table, {row, b.index(half)}, half);
  b.loop(b.index(0), b.index(heads * headDim), headDim, [&](Value first) {
    Value second = b.add(first, b.index(half));
    Value x1 = b.load(x, {row, first}, half);
    Value x2 = b.load(x, {row, second}, half);
    auto rotated = b.mapAll(
        {x1, x2, cosines, sines}, {element, element}, [&](ValueRange v) {
          Value p = b.mul(v[0], v[2]), q = b.mul(v[1], v[3]);
          Value r = b.mul(v[1], v[2]), s = b.mul(v[0], v[3]);
          Value first = inverse ? b.add(p, q) : b.sub(p, q);
          Value second = inverse ? b.sub(r, s) : b.add(r, s);
          return SmallVector<Value>{b.toFloat(first, element),
                                    b.toFloat(second, element)};
        });
    b.store(rotated[0], x, {row, first});
    b.store(rotated[1], x, {row, second});
  });
  return tag(b.getKernel(), RopeFamily{columns, headDim, heads, inverse, element});
}
