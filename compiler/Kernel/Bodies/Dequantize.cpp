//===- Dequantize.cpp - Values of 4-bit blocks ----------------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"
#include "compiler/Kernel/Bodies/Families.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;
using arith::CmpIPredicate;

/// The values of `bytes` pairs of codes from byte `begin` on.
static Value emitPairs(BodyBuilder &b, Value codes, Value begin, int64_t bytes,
                       Value scale, ArrayRef<float> codebook, Type element) {
  Value packed = b.load(codes, begin, bytes);
  Value values = b.generic(
      {{packed, b.dims({0}, 2)}},
      {{b.empty({bytes, 2}, element), b.dims({0, 1}, 2)}}, [&](ValueRange v) {
        // The first code of a byte is in the high nibble.
        Value pair = arith::ExtUIOp::create(b, b.getI32Type(), v[0]);
        Value isSecond =
            b.compare(CmpIPredicate::ne, Value(linalg::IndexOp::create(b, 1)),
                      b.index(0));
        Value high = arith::ShRUIOp::create(b, pair, b.i32(4));
        Value low = arith::AndIOp::create(b, pair, b.i32(15));
        Value code = b.select(isSecond, low, high);
        Value value = b.mul(b.lookUp(code, codebook), scale);
        return SmallVector<Value>{b.toFloat(value, element)};
      })[0];
  return b.reshape(values, 2 * bytes);
}

kern::FuncOp kernels::buildDequantize(OpBuilder &builder, Location loc,
                                      qt::BlockFormat format, int64_t elements,
                                      Type element) {
  Type f32 = builder.getF32Type(), i8 = builder.getI8Type();
  SmallVector<Type> types = {arrayOf(i8, (elements + 1) / 2)};
  if (format.nested)
    types.append({rowsOf(i8), rowsOf(f32), arrayOf(f32, 1)});
  else
    types.push_back(rowsOf(f32));
  types.push_back(arrayOf(element, elements));
  BodyBuilder b(builder, loc,
                Twine(format.isNF4 ? "dequantize_nf4_" : "dequantize_fp4_") +
                    "b" + Twine(format.block) + "_" + Twine(format.nested) +
                    "_n" + Twine(elements) + "_" + nameOf(element),
                types, element);
  b.flags = arith::FastMathFlags::none; // roundings are part of the format
  Value codes = b.argument(0), y = b.argument(types.size() - 1);
  Value block = b.item();
  ArrayRef<float> codebook = qt::getCodebook(format.isNF4);

  Value scale = b.loadScalar(b.argument(1), block);
  if (format.nested) {
    Value code = arith::ExtUIOp::create(b, b.getI32Type(), scale);
    Value nested =
        b.loadScalar(b.argument(2), b.quotient(block, format.nested));
    Value product = b.mul(b.lookUp(code, qt::getDynamicMap()), nested);
    scale = b.add(product, b.loadScalar(b.argument(3), b.index(0)));
  }
  b.blockOf(block, elements, format.block, [&](int64_t count) {
    Value byte = b.mul(block, b.index(format.block / 2));
    Value first = b.mul(block, b.index(format.block));
    if (int64_t pairs = count / 2)
      b.store(emitPairs(b, codes, byte, pairs, scale, codebook, element), y,
              first);
    if (count % 2 == 0)
      return;
    Value last = emitPairs(b, codes, b.add(byte, b.index(count / 2)), 1, scale,
                           codebook, element);
    b.storeScalar(b.extract(last, b.index(0)), y,
                  b.add(first, b.index(count - 1)));
  });
  return tag(b.getKernel(), QuantisedFamily{QuantisedFamily::Dequantize, format, elements, element});
}
