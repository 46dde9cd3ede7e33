//===- ExpandMath.cpp - Math functions as arithmetic ----------------------===//

#include "compiler/Target/Cpu/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace fsdpq;

namespace {

/// exp of f32 to about one unit in the last place. Results below 2^-125 are
/// zero; infinities and NaN come out as they should.
///
/// exp(x) = 2^n * exp(r) with n = round(x / ln 2), |r| <= ln(2) / 2. The
/// polynomial is that of Cephes (Moshier), `expf`.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type i32 = b.getI32Type(), f32 = b.getF32Type();
    auto f = [&](float value) -> Value {
      return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
    };
    auto i = [&](int32_t value) -> Value {
      return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
    };
    auto fma = [&](Value x, Value y, Value z) -> Value {
      return math::FmaOp::create(b, x, y, z);
    };
    auto mul = [&](Value x, Value y) -> Value {
      return arith::MulFOp::create(b, x, y);
    };

    // Above the bound n would not fit the exponent field. A NaN is not above.
    Value bound = f(89.4f);
    Value isAbove = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                          op.getOperand(), bound);
    Value x = arith::SelectOp::create(b, isAbove, bound, op.getOperand());

    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    Value magic = f(12582912.0f);
    Value shifted = fma(x, f(1.44269504088896341f), magic);
    Value n = arith::SubFOp::create(b, shifted, magic);
    Value r = fma(n, f(-0.693359375f), x);
    r = fma(n, f(2.12194440e-4f), r);
    Value p = f(1.9875691500e-4f);
    for (float coefficient :
         {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
          1.6666665459e-1f, 5.0000001201e-1f})
      p = fma(p, r, f(coefficient));
    Value rest = fma(p, mul(r, r), r);
    // 2 * exp(r), and 2^(n - 1): with n = 128 results still may be finite.
    Value twice = fma(rest, f(2.0f), f(2.0f));
    Value bits = arith::BitcastOp::create(b, i32, shifted);
    Value exponent = arith::ShLIOp::create(b, bits, i(23));
    exponent = arith::AddIOp::create(b, exponent, i(126 << 23));
    Value scale = arith::BitcastOp::create(b, f32, exponent);
    Value result = mul(twice, scale);

    Value isTiny = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT,
                                         op.getOperand(), f(-86.6f));
    rewriter.replaceOp(
        op, arith::SelectOp::create(b, isTiny, f(0.0f), result).getResult());
    return success();
  }
};

/// Between f64 and bf16 by way of f32, as the CUDA texts do it.
template <typename Conversion>
struct ConvertByF32 : OpRewritePattern<Conversion> {
  using OpRewritePattern<Conversion>::OpRewritePattern;

  LogicalResult matchAndRewrite(Conversion op,
                                PatternRewriter &rewriter) const override {
    Type from = op.getIn().getType(), to = op.getType();
    if (!(from.isBF16() && to.isF64()) && !(from.isF64() && to.isBF16()))
      return failure();
    Value single = Conversion::create(rewriter, op.getLoc(),
                                      rewriter.getF32Type(), op.getIn());
    rewriter.replaceOpWithNewOp<Conversion>(op, to, single);
    return success();
  }
};

} // namespace

void cpu::expandMath(func::FuncOp function) {
  RewritePatternSet patterns(function.getContext());
  patterns.add<ExpandExp, ConvertByF32<arith::ExtFOp>,
               ConvertByF32<arith::TruncFOp>>(function.getContext());
  // Of f32 only; f64 stays with libm.
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return name == "math.log" || name == "math.tanh" || name == "math.erf";
  });
  // bf16 conversions in integer arithmetic: the same bits on every CPU
  // (vcvtneps2bf16 flushes denormals), and no call into a run-time library.
  arith::populateExpandBFloat16Patterns(patterns);
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  (void)applyPatternsGreedily(function, std::move(patterns), config);
}
