//===- Norm.cpp - Root mean square normalisation --------------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"

#include "dialects/Support/Elements.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;

kern::FuncOp kernels::buildRmsNorm(OpBuilder &builder, Location loc,
                                   int64_t columns, Type element, double eps,
                                   bool addResidual) {
  MemRefType rows = rowsOf(element, columns);
  SmallVector<Type> types = {rows};
  if (addResidual)
    types.push_back(rows);
  types.push_back(arrayOf(element, columns));
  types.append(addResidual ? 2 : 1, rows);
  types.push_back(rowsOf(getComputeType(element)));
  BodyBuilder b(builder, loc,
                Twine(addResidual ? "add_rms_norm_" : "rms_norm_") +
                    Twine(columns) + "_" + nameOf(element),
                types, element);
  Value row = b.item();
  unsigned next = addResidual ? 2 : 1;
  Value w = b.load(b.argument(next++), {}, columns);
  Value x = b.load(b.argument(0), row, columns);
  if (addResidual) {
    Value residual = b.load(b.argument(1), row, columns);
    Value sums = b.argument(next++);
    b.store(
        b.map({x, residual}, [&](ValueRange v) { return b.add(v[0], v[1]); }),
        sums, row);
    // Read again from where it is now, so that it needs no other place.
    x = b.load(sums, row, columns);
  }
  Value squares =
      b.sum(x, getComputeType(element), [&](ValueRange v) { return b.mul(v[0], v[0]); });
  Value mean = b.div(squares, b.real(columns));
  Value root = math::SqrtOp::create(b, b.add(mean, b.real(eps)));
  Value rstd = b.div(b.real(1), root);
  b.store(b.map({x, w},
                [&](ValueRange v) { return b.mul(b.mul(v[0], rstd), v[1]); }),
          b.argument(next), row);
  b.storeScalar(rstd, b.argument(next + 1), row);
  return b.getKernel();
}

kern::FuncOp kernels::buildRmsNormGrad(OpBuilder &builder, Location loc,
                                       int64_t columns, Type element,
                                       bool addPlus) {
  MemRefType rows = rowsOf(element, columns);
  SmallVector<Type> types = {rows, rows, arrayOf(element, columns),
                             rowsOf(getComputeType(element))};
  types.append(addPlus ? 2 : 1, rows);
  BodyBuilder b(builder, loc,
                Twine(addPlus ? "add_rms_norm_grad_" : "rms_norm_grad_") +
                    Twine(columns) + "_" + nameOf(element),
                types, element);
  Value row = b.item();
  Value dy = b.load(b.argument(0), row, columns);
  Value x = b.load(b.argument(1), row, columns);
  Value w = b.load(b.argument(2), {}, columns);
  Value rstd = b.loadScalar(b.argument(3), row);
  Value dot = b.sum({dy, x, w}, getComputeType(element), [&](ValueRange v) {
    return b.mul(b.mul(v[0], v[2]), v[1]);
  });
  // dx = rstd * dy * w - rstd^3 * mean * x
  Value cube = b.mul(b.mul(rstd, rstd), rstd);
  Value pull = b.mul(cube, b.div(dot, b.real(columns)));
  SmallVector<Value> inputs = {dy, x, w};
  if (addPlus)
    inputs.push_back(b.load(b.argument(4), row, columns));
  Value dx = b.map(inputs, [&](ValueRange v) {
    Value scaled = b.mul(b.mul(v[0], v[2]), rstd);
    Value result = b.sub(scaled, b.mul(v[1], pull));
    return addPlus ? b.add(result, v[3]) : result;
  });
  b.store(dx, b.argument(addPlus ? 5 : 4), row);
  return b.getKernel();
}

kern::FuncOp kernels::buildRmsNormWeightGrad(OpBuilder &builder, Location loc,
                                             int64_t columns, Type element) {
  MemRefType rows = rowsOf(element, columns);
  Type sum = getComputeType(element);
  BodyBuilder b(builder, loc,
                "rms_norm_weight_grad_" + Twine(columns) + "_" +
                    nameOf(element),
                {rows, rows, rowsOf(sum), arrayOf(sum, columns),
                 builder.getI64Type()},
                element);
  int64_t size = columnTile(columns);
  Value column = b.mul(b.item(), b.index(size));
  Value dw = b.load(b.argument(3), column, size);
  Value end = b.toIndex(b.argument(4));
  dw = b.loop(b.index(0), end, 1, dw, [&](Value row, ValueRange carried) {
    Value dy = b.load(b.argument(0), {row, column}, size);
    Value x = b.load(b.argument(1), {row, column}, size);
    Value rstd = b.loadScalar(b.argument(2), row);
    AffineMap line = b.dims({0}, 1);
    return b.generic({{dy, line}, {x, line}}, {{carried[0], line}},
                     [&](ValueRange v) {
                       Value term = b.mul(b.mul(v[1], rstd), v[0]);
                       return SmallVector<Value>{b.add(v[2], term)};
                     });
  })[0];
  b.store(dw, b.argument(3), column);
  return b.getKernel();
}
