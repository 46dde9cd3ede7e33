//===- FuseNormResidual.cpp - tfm-fuse-norm-residual ----------------------===//

#include "compiler/Fuse/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMFUSENORMRESIDUAL
#include "compiler/Fuse/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct FuseForward : OpRewritePattern<tfm::RmsNormOp> {
  FuseForward(MLIRContext *context, Pass::Statistic &fused)
      : OpRewritePattern(context), fused(fused) {}

  LogicalResult matchAndRewrite(tfm::RmsNormOp norm,
                                PatternRewriter &rewriter) const override {
    auto add = norm.getX().getDefiningOp<tfm::AddOp>();
    if (!add || add->getBlock() != norm->getBlock())
      return rewriter.notifyMatchFailure(norm, "the input is no sum");
    // The fused operation stands at the addition, so that every user of the
    // sum still follows it; the weight must be there by then.
    Operation *weight = norm.getW().getDefiningOp();
    if (weight && weight->getBlock() == add->getBlock() &&
        !weight->isBeforeInBlock(add)) {
      bool canMove = llvm::all_of(weight->getOperands(), [&](Value operand) {
        Operation *maker = operand.getDefiningOp();
        return isa<tfm::CastOp>(weight) &&
               (!maker || (maker->getBlock() == add->getBlock() &&
                           maker->isBeforeInBlock(add)));
      });
      if (!canMove)
        return rewriter.notifyMatchFailure(norm, "the weight comes too late");
      rewriter.moveOpBefore(weight, add);
    }
    rewriter.setInsertionPoint(add);
    auto op = tfm::AddRmsNormOp::create(rewriter, norm.getLoc(), add.getA(),
                                        add.getB(), norm.getW(), norm.getEps());
    remarkPassed(norm.getLoc(), RemarkId::FuseNorm) << "residual addition and norm in one pass";
    rewriter.replaceOp(norm, {op.getY(), op.getRstd()});
    rewriter.replaceOp(add, op.getSum());
    ++fused;
    return success();
  }

  Pass::Statistic &fused;
};

struct FuseBackward : OpRewritePattern<tfm::AddOp> {
  FuseBackward(MLIRContext *context, Pass::Statistic &fused)
      : OpRewritePattern(context), fused(fused) {}

  LogicalResult matchAndRewrite(tfm::AddOp add,
                                PatternRewriter &rewriter) const override {
    auto norm = add.getB().getDefiningOp<tfm::RmsNormGradOp>();
    Value other = add.getA();
    if (!norm) {
      norm = add.getA().getDefiningOp<tfm::RmsNormGradOp>();
      other = add.getB();
    }
    if (!norm || norm.getPlus())
      return rewriter.notifyMatchFailure(add, "no operand is a norm's gradient");
    if (!norm->hasOneUse())
      return rewriter.notifyMatchFailure(norm, "has a second use");
    rewriter.replaceOpWithNewOp<tfm::RmsNormGradOp>(
        add, norm.getDy(), norm.getX(), norm.getW(), norm.getRstd(), other);
    ++fused;
    return success();
  }

  Pass::Statistic &fused;
};

struct FuseNormResidualPass
    : fsdpq::impl::TfmFuseNormResidualBase<FuseNormResidualPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseForward, FuseBackward>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
