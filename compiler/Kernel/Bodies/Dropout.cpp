//===- Dropout.cpp - Elements that are dropped ----------------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <cmath>

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;

namespace {
/// Wrapping arithmetic on integers of 32 or 64 bits.
class Bits {
public:
  Bits(BodyBuilder &builder, Type type) : builder(builder), type(type) {}

  Value constant(uint64_t value) {
    const APInt bits(64, value);
    return arith::ConstantOp::create(
        builder,
        IntegerAttr::get(type, bits.trunc(type.getIntOrFloatBitWidth())));
  }
  Value add(Value a, Value b) { return builder.add(a, b); }
  Value mul(Value a, uint64_t b) { return builder.mul(a, constant(b)); }
  Value exclusiveOr(Value a, Value b) {
    return arith::XOrIOp::create(builder, a, b);
  }
  Value shiftRight(Value a, uint64_t count) {
    return arith::ShRUIOp::create(builder, a, constant(count));
  }
  Value foldHigh(Value a, uint64_t count) {
    return exclusiveOr(a, shiftRight(a, count));
  }

private:
  BodyBuilder &builder;
  Type type;
};
} // namespace

/// The output function of splitmix64.
static Value mix(Bits &bits, Value z) {
  z = bits.mul(bits.foldHigh(z, 30), 0xBF58476D1CE4E5B9);
  z = bits.mul(bits.foldHigh(z, 27), 0x94D049BB133111EB);
  return bits.foldHigh(z, 31);
}

kern::FuncOp kernels::buildDropout(OpBuilder &builder, Location loc,
                                   int64_t columns, double rate, Type element) {
  MemRefType rows = rowsOf(element, columns);
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  BodyBuilder b(builder, loc,
                "dropout_" + Twine(columns) + "_" + nameOf(element),
                {rows, rows, i64, builder.getF64Type()}, element);

  constexpr uint64_t gamma = 0x9E3779B97F4A7C15; // 2^64 / phi, odd
  Bits wide(b, i64), narrow(b, i32);
  Value key = arith::FPToSIOp::create(b, i64, b.argument(3));
  Value row = arith::IndexCastOp::create(b, i64, b.item());
  Value place = mix(wide, wide.add(key, wide.mul(b.argument(2), gamma)));
  Value seed = mix(wide, wide.add(place, wide.mul(row, gamma)));
  Value low = arith::TruncIOp::create(b, i32, seed);
  Value high = arith::TruncIOp::create(b, i32, wide.shiftRight(seed, 32));

  const uint64_t dropped = std::min<uint64_t>(
      std::llround(std::ldexp(rate, 32)), 0xFFFFFFFFu);
  Value x = b.load(b.argument(0), b.item(), columns);
  Value y = b.map(x, [&](ValueRange v) {
    Value column = b.toI32(linalg::IndexOp::create(b, 0));
    Value h = narrow.add(low, narrow.mul(column, 0x9E3779B1));
    h = narrow.mul(narrow.foldHigh(h, 16), 0x85EBCA6B);
    h = narrow.exclusiveOr(h, high);
    h = narrow.mul(narrow.foldHigh(h, 13), 0xC2B2AE35);
    h = narrow.foldHigh(h, 16);
    Value isKept = b.compare(arith::CmpIPredicate::uge, h,
                             narrow.constant(dropped));
    Value scaled = b.mul(v[0], b.constant(v[0].getType(), 1 / (1 - rate)));
    return b.select(isKept, scaled, b.constant(v[0].getType(), 0));
  });
  b.store(y, b.argument(1), b.item());
  return b.getKernel();
}
