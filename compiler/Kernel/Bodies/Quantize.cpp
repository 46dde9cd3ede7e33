//===- Quantize.cpp - Rounding to 4-bit blocks and 8-bit scales -----------===//
//
// The arithmetic of bitsandbytes: the largest magnitude of a block becomes 1,
// by a product with its reciprocal in full blocks and by a quotient in a short
// last one; then the number of thresholds below the value is the place of its
// code among the sorted values.
//
//===----------------------------------------------------------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"
#include "compiler/Kernel/Bodies/Families.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;
using arith::CmpFPredicate;

namespace {

/// Ascending thresholds, padded with infinity to a power of two, of which at
/// least one is padding.
struct Thresholds {
  explicit Thresholds(ArrayRef<float> values) : table(values) {
    table.resize(llvm::PowerOf2Ceil(values.size() + 1), INFINITY);
  }
  SmallVector<float> table;
};

} // namespace

/// The number of thresholds strictly below `x`, by bisection.
static Value emitRank(BodyBuilder &b, Value x, const Thresholds &thresholds) {
  int64_t count = thresholds.table.size();
  Value rank = b.i32(0);
  for (int64_t step = count / 2; step > 0; step /= 2) {
    Value probe = b.add(rank, b.i32(step - 1));
    Value threshold = b.lookUp(probe, thresholds.table);
    Value isAbove = b.compare(CmpFPredicate::OGT, x, threshold);
    rank = b.select(isAbove, b.add(rank, b.i32(step)), rank);
  }
  return rank;
}

/// x scaled by the block's largest magnitude. A zero stays one, also where that
/// is 0 or so small that its reciprocal is infinite.
static Value emitScaled(BodyBuilder &b, Value x, Value absmax,
                        Value reciprocal) {
  Value scaled = reciprocal ? b.mul(x, reciprocal) : b.div(x, absmax);
  Value zero = b.constant(b.getF32Type(), 0);
  return b.select(b.compare(CmpFPredicate::OEQ, x, zero), zero, scaled);
}

/// Two codes a byte, the first in the high nibble.
static Value emitPacked(BodyBuilder &b, Value codes, int64_t bytes) {
  auto strided = [&](int64_t offset) {
    return AffineMap::get(
        1, 0, getAffineDimExpr(0, b.getContext()) * 2 + offset, b.getContext());
  };
  return b.generic(
      {{codes, strided(0)}, {codes, strided(1)}},
      {{b.empty(bytes, b.getI8Type()), b.dims({0}, 1)}}, [&](ValueRange v) {
        Value shifted = arith::ShLIOp::create(
            b, v[0], arith::ConstantOp::create(b, b.getI8IntegerAttr(4)));
        Value pair = arith::OrIOp::create(b, shifted, v[1]);
        return SmallVector<Value>{pair};
      })[0];
}

kern::FuncOp kernels::buildQuantize(OpBuilder &builder, Location loc,
                                    qt::BlockFormat format, int64_t elements,
                                    Type rounded) {
  Type f32 = builder.getF32Type(), i8 = builder.getI8Type();
  BodyBuilder b(
      builder, loc,
      Twine(format.isNF4 ? "quantize_nf4_" : "quantize_fp4_") + "b" +
          Twine(format.block) + "_n" + Twine(elements) +
          (rounded ? "_" + nameOf(rounded) : ""),
      {arrayOf(f32, elements), arrayOf(i8, (elements + 1) / 2), rowsOf(f32)},
      f32);
  b.flags = arith::FastMathFlags::none;
  qt::Quantizer quantizer = qt::getQuantizer(format.isNF4);
  Thresholds thresholds(quantizer.thresholds);
  // Codes in the order of their values. A look-up gives floats.
  SmallVector<float> codeTable(quantizer.codes.begin(), quantizer.codes.end());
  codeTable.resize(16, 0);
  auto toCode = [&](Value scaled) -> Value {
    Value rank = emitRank(b, scaled, thresholds);
    if (!format.isNF4) {
      Value code = b.lookUp(rank, codeTable);
      rank = arith::FPToSIOp::create(b, b.getI32Type(), code);
    }
    return arith::TruncIOp::create(b, i8, rank);
  };

  Value block = b.item();
  Value first = b.mul(block, b.index(format.block));
  Value byte = b.mul(block, b.index(format.block / 2));
  b.blockOf(block, elements, format.block, [&](int64_t count) {
    Value x = b.load(b.argument(0), first, count);
    if (rounded)
      x = b.map(x, [&](ValueRange v) {
        return b.toFloat(b.toFloat(v[0], rounded), f32);
      });
    Value absmax = b.max(x, 0, [&](Value v) { return b.absolute(v); });
    b.storeScalar(absmax, b.argument(2), block);
    Value reciprocal;
    if (count == format.block)
      reciprocal = b.div(b.constant(f32, 1), absmax);
    Value codes = b.mapAll(x, i8, [&](ValueRange v) {
      return SmallVector<Value>{
          toCode(emitScaled(b, v[0], absmax, reciprocal))};
    })[0];
    if (int64_t pairs = count / 2)
      b.store(emitPacked(b, codes, pairs), b.argument(1), byte);
    if (count % 2 == 0)
      return;
    Value last = b.extract(codes, b.index(count - 1));
    Value four = arith::ConstantOp::create(b, b.getI8IntegerAttr(4));
    last = arith::ShLIOp::create(b, last, four);
    Value pair = arith::OrIOp::create(b, last, toCode(b.constant(f32, 0)));
    b.storeScalar(pair, b.argument(1), b.add(byte, b.index(count / 2)));
  });
  return tag(b.getKernel(), QuantisedFamily{QuantisedFamily::Quantize, format, elements,
                                            rounded ? rounded : f32});
}

kern::FuncOp kernels::buildScaleSum(OpBuilder &builder, Location loc,
                                    int64_t blocks) {
  Type f32 = builder.getF32Type(), f64 = builder.getF64Type();
  BodyBuilder b(builder, loc, "scale_sum_n" + Twine(blocks),
                {arrayOf(f32, blocks), arrayOf(f64, 1)}, f32);
  Value absmax = b.load(b.argument(0), {}, blocks);
  Value sum =
      b.sum(absmax, f64, [&](ValueRange v) { return b.toFloat(v[0], f64); });
  b.storeScalar(sum, b.argument(1), b.index(0));
  return b.getKernel();
}

kern::FuncOp kernels::buildScaleMean(OpBuilder &builder, Location loc,
                                     int64_t pieces, int64_t blocks) {
  Type f32 = builder.getF32Type(), f64 = builder.getF64Type();
  BodyBuilder b(builder, loc,
                "scale_mean_p" + Twine(pieces) + "_n" + Twine(blocks),
                {arrayOf(f64, pieces), arrayOf(f32, 1)}, f32);
  Value sum = b.loop(b.index(0), b.index(pieces), 1, b.constant(f64, 0),
                     [&](Value i, ValueRange carried) {
                       Value part = b.loadScalar(b.argument(0), i);
                       return SmallVector<Value>{b.add(carried[0], part)};
                     })[0];
  Value mean = b.div(sum, b.constant(f64, blocks));
  b.storeScalar(b.toFloat(mean, f32), b.argument(1), b.index(0));
  return b.getKernel();
}

kern::FuncOp kernels::buildQuantizeScales(OpBuilder &builder, Location loc,
                                          qt::BlockFormat format,
                                          int64_t blocks) {
  Type f32 = builder.getF32Type(), i8 = builder.getI8Type();
  BodyBuilder b(
      builder, loc,
      "quantize_scales_b" + Twine(format.nested) + "_n" + Twine(blocks),
      {arrayOf(f32, blocks), arrayOf(f32, 1), arrayOf(i8, blocks), rowsOf(f32)},
      f32);
  b.flags = arith::FastMathFlags::none;
  Thresholds thresholds(qt::getDynamicThresholds());
  Value offset = b.loadScalar(b.argument(1), b.index(0));
  Value first = b.mul(b.item(), b.index(format.nested));
  b.blockOf(b.item(), blocks, format.nested, [&](int64_t count) {
    Value scales = b.load(b.argument(0), first, count);
    Value absmax =
        b.max(scales, 0, [&](Value v) { return b.absolute(b.sub(v, offset)); });
    b.storeScalar(absmax, b.argument(3), b.item());
    Value reciprocal;
    if (count == format.nested)
      reciprocal = b.div(b.constant(f32, 1), absmax);
    Value codes = b.mapAll(scales, i8, [&](ValueRange v) {
      Value centred = b.sub(v[0], offset);
      Value rank =
          emitRank(b, emitScaled(b, centred, absmax, reciprocal), thresholds);
      Value code = arith::TruncIOp::create(b, i8, rank);
      return SmallVector<Value>{code};
    })[0];
    b.store(codes, b.argument(2), first);
  });
  return tag(b.getKernel(), QuantisedFamily{QuantisedFamily::QuantizeScales, format, blocks, f32});
}
