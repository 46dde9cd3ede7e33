//===- Matmul.cpp - Matrix products without a library ---------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;

/// Columns of c that are summed up at a time.
static constexpr int64_t columnsAtATime = 512;

kern::FuncOp kernels::buildMatmul(OpBuilder &builder, Location loc,
                                  const MatmulShape &shape) {
  Type element = shape.element;
  SmallVector<Type> types;
  if (shape.transA)
    types = {rowsOf(element, shape.m), rowsOf(element, shape.n),
             arrayOf(shape.result, {shape.m, shape.n}), builder.getI64Type()};
  else
    types = {rowsOf(element, shape.k),
             shape.transB ? arrayOf(element, {shape.n, shape.k})
                          : arrayOf(element, {shape.k, shape.n}),
             rowsOf(shape.result, shape.n)};
  std::string name = "matmul";
  name += shape.transA ? "_t" : "_n";
  name += shape.transB ? "t_" : "n_";
  BodyBuilder b(builder, loc,
                name + Twine(shape.transA ? shape.m : shape.k) + "x" +
                    Twine(shape.n) + "_" + nameOf(element) +
                    (shape.result == element ? "" : "_" + nameOf(shape.result)),
                types, element);
  Value row = b.item(), a = b.argument(0), right = b.argument(1),
        c = b.argument(2);
  AffineMap line = b.dims({0}, 1);

  b.tiles(shape.n, columnsAtATime, [&](Value column, int64_t size) {
    Value sums = b.fill(size, b.real(0));
    if (!shape.transA && shape.transB) {
      Value left = b.load(a, row, shape.k);
      Value tile = b.load(right, column, {size, shape.k});
      sums = b.generic({{left, b.dims({1}, 2)}, {tile, b.dims({0, 1}, 2)}},
                       {{sums, b.dims({0}, 2)}}, [&](ValueRange v) {
                         return SmallVector<Value>{
                             b.sumStep(v[2], b.mul(v[0], v[1]))};
                       })[0];
    } else {
      // One row of the right matrix after the other.
      Value count = shape.transA ? b.toIndex(b.argument(3)) : b.index(shape.k);
      sums =
          b.loop(b.index(0), count, 1, sums, [&](Value k, ValueRange carried) {
            Value factor = shape.transA ? b.loadScalar(a, {k, row})
                                        : b.loadScalar(a, {row, k});
            Value tile = b.load(right, {k, column}, size);
            return b.generic({{tile, line}}, {{carried[0], line}},
                             [&](ValueRange v) {
                               Value product = b.mul(v[0], factor);
                               return SmallVector<Value>{b.add(v[1], product)};
                             });
          })[0];
    }
    SmallVector<Value> inputs = {sums};
    if (shape.beta != 0)
      inputs.push_back(b.load(c, {row, column}, size));
    Value result = b.map(inputs, [&](ValueRange v) {
      Value scaled = b.mul(v[0], b.real(shape.alpha));
      return shape.beta != 0 ? b.add(scaled, v[1]) : scaled;
    });
    b.store(result, c, {row, column});
  });
  return b.getKernel();
}
