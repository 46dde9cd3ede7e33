//===- FuseGated.cpp - tfm-fuse-gated -------------------------------------===//

#include "compiler/Fuse/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMFUSEGATED
#include "compiler/Fuse/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct FuseGate : OpRewritePattern<tfm::MulOp> {
  FuseGate(MLIRContext *context, Pass::Statistic &fused)
      : OpRewritePattern(context), fused(fused) {}

  LogicalResult matchAndRewrite(tfm::MulOp mul,
                                PatternRewriter &rewriter) const override {
    Value up = mul.getB();
    auto silu = mul.getA().getDefiningOp<tfm::SiluOp>();
    if (!silu) {
      silu = mul.getB().getDefiningOp<tfm::SiluOp>();
      up = mul.getA();
    }
    if (!silu)
      return rewriter.notifyMatchFailure(mul, "no operand is a silu");
    if (!silu->hasOneUse())
      return rewriter.notifyMatchFailure(silu, "has a second use");
    remarkPassed(mul.getLoc(), RemarkId::FuseGated) << "activation joined to its gate";
    rewriter.replaceOpWithNewOp<tfm::GatedSiluOp>(
        mul, ValueRange{silu.getX(), up});
    ++fused;
    return success();
  }

  Pass::Statistic &fused;
};

struct FuseGatedPass : fsdpq::impl::TfmFuseGatedBase<FuseGatedPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseGate>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
