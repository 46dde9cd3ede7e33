//===- FuseXent.cpp - tfm-fuse-xent ---------------------------------------===//

#include "compiler/Fuse/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMFUSEXENT
#include "compiler/Fuse/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct FuseLossGradient : OpRewritePattern<tfm::CrossEntropyGradOp> {
  FuseLossGradient(MLIRContext *context, Pass::Statistic &fused)
      : OpRewritePattern(context), fused(fused) {}

  LogicalResult matchAndRewrite(tfm::CrossEntropyGradOp grad,
                                PatternRewriter &rewriter) const override {
    auto loss = grad.getLse().getDefiningOp<tfm::CrossEntropyOp>();
    auto splat = grad.getDloss().getDefiningOp<tfm::SplatOp>();
    if (!loss || loss.getLogits() != grad.getLogits() ||
        loss.getTargets() != grad.getTargets())
      return rewriter.notifyMatchFailure(grad, "the loss is of other logits");
    if (!splat)
      return rewriter.notifyMatchFailure(grad, "row gradients are no splat");
    if (!loss.getLse().hasOneUse() ||
        llvm::range_size(loss.getLogits().getUses()) != 2)
      return rewriter.notifyMatchFailure(grad, "the logits have a further use");
    rewriter.setInsertionPoint(loss);
    auto op = tfm::FusedCrossEntropyOp::create(
        rewriter, loss.getLoc(), loss.getLogits(), loss.getTargets(),
        splat.getScalar());
    remarkPassed(loss.getLoc(), RemarkId::FuseLoss) << "loss and gradient in one pass over the logits";
    rewriter.replaceAllUsesWith(loss.getLoss(), op.getLoss());
    rewriter.replaceOp(grad, op.getDlogits());
    rewriter.eraseOp(loss);
    ++fused;
    return success();
  }

  Pass::Statistic &fused;
};

struct FuseXentPass : fsdpq::impl::TfmFuseXentBase<FuseXentPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseLossGradient>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([](tfm::CrossEntropyGradOp grad) {
      remarkMissed(grad.getLoc(), RemarkId::FuseLoss)
          << "the logits are needed elsewhere or the row gradients differ: a "
             "second pass over the logits";
    });
  }
};
} // namespace
