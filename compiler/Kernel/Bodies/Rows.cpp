//===- Rows.cpp - Rows chosen by index ------------------------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"

#include "dialects/Support/Elements.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;
using arith::CmpIPredicate;

/// y[item] = source[index[item]]
static kern::FuncOp buildRowCopy(OpBuilder &builder, Location loc,
                                 const Twine &name, unsigned source,
                                 unsigned index, TypeRange types,
                                 int64_t columns, Type element) {
  BodyBuilder b(builder, loc, name + "_" + nameOf(element), types, element);
  Value row = b.toIndex(b.loadScalar(b.argument(index), b.item()));
  b.copy(b.argument(source), row, b.argument(2), b.item(), columns);
  return b.getKernel();
}

kern::FuncOp kernels::buildEmbedding(OpBuilder &builder, Location loc,
                                     int64_t vocabulary, int64_t columns,
                                     Type element) {
  return buildRowCopy(
      builder, loc, "embedding_" + Twine(vocabulary) + "x" + Twine(columns),
      /*source=*/1, /*index=*/0,
      {rowsOf(builder.getI32Type()), arrayOf(element, {vocabulary, columns}),
       rowsOf(element, columns)},
      columns, element);
}

kern::FuncOp kernels::buildGatherRows(OpBuilder &builder, Location loc,
                                      int64_t columns, Type element) {
  return buildRowCopy(builder, loc, "gather_rows_" + Twine(columns),
                      /*source=*/0, /*index=*/1,
                      {rowsOf(element, columns), rowsOf(builder.getI32Type()),
                       rowsOf(element, columns)},
                      columns, element);
}

kern::FuncOp kernels::buildScatterRows(OpBuilder &builder, Location loc,
                                       int64_t columns, Type element) {
  MemRefType rows = rowsOf(element, columns);
  BodyBuilder b(builder, loc,
                "scatter_rows_" + Twine(columns) + "_" + nameOf(element),
                {rows, rowsOf(builder.getI32Type()), rows}, element);
  Value source = b.loadScalar(b.argument(1), b.item());
  b.branch(
      b.compare(CmpIPredicate::slt, source, b.i32(0)),
      [&] {
        b.store(b.fill(columns, b.constant(element, 0)), b.argument(2),
                b.item());
      },
      [&] {
        b.copy(b.argument(0), b.toIndex(source), b.argument(2), b.item(),
               columns);
      });
  return b.getKernel();
}

kern::FuncOp kernels::buildEmbeddingGrad(OpBuilder &builder, Location loc,
                                         int64_t vocabulary, int64_t columns,
                                         Type element) {
  BodyBuilder b(builder, loc,
                "embedding_grad_" + Twine(vocabulary) + "x" + Twine(columns) +
                    "_" + nameOf(element),
                {rowsOf(element, columns), rowsOf(builder.getI32Type()),
                 arrayOf(getComputeType(element), {vocabulary, columns}),
                 builder.getI64Type()},
                element);
  int64_t size = columnTile(columns);
  Value column = b.mul(b.item(), b.index(size));
  Value dtable = b.argument(2);
  b.loop(b.index(0), b.toIndex(b.argument(3)), 1, [&](Value row) {
    Value id = b.toIndex(b.loadScalar(b.argument(1), row));
    Value dy = b.load(b.argument(0), {row, column}, size);
    Value sum = b.load(dtable, {id, column}, size);
    b.store(b.map({sum, dy}, [&](ValueRange v) { return b.add(v[0], v[1]); }),
            dtable, {id, column});
  });
  return b.getKernel();
}
