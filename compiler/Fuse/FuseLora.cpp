//===- FuseLora.cpp - tfm-fuse-lora ---------------------------------------===//

#include "compiler/Fuse/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMFUSELORA
#include "compiler/Fuse/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
/// y0 + factor * (x a^T) b^T, with y0 = x w^T on either side of the addition; the
/// adapter may read dropout(x).
struct FuseAdapter : OpRewritePattern<tfm::AddOp> {
  FuseAdapter(MLIRContext *context, Pass::Statistic &fused)
      : OpRewritePattern(context), fused(fused) {}

  LogicalResult matchAndRewrite(tfm::AddOp add,
                                PatternRewriter &rewriter) const override {
    auto base = add.getA().getDefiningOp<tfm::LinearOp>();
    auto scale = add.getB().getDefiningOp<tfm::ScaleOp>();
    if (!base || !scale) {
      base = add.getB().getDefiningOp<tfm::LinearOp>();
      scale = add.getA().getDefiningOp<tfm::ScaleOp>();
    }
    if (!base || !scale)
      return rewriter.notifyMatchFailure(add, "not a layer plus a scaled value");
    auto up = scale.getX().getDefiningOp<tfm::LinearOp>();
    auto down = up ? up.getX().getDefiningOp<tfm::LinearOp>() : nullptr;
    if (!down)
      return rewriter.notifyMatchFailure(add, "the scaled value is no adapter");
    // Adapters of one input share what they drop: it may have more uses.
    auto dropout = down.getX() == base.getX()
                       ? tfm::DropoutOp()
                       : down.getX().getDefiningOp<tfm::DropoutOp>();
    if ((dropout ? dropout.getX() : down.getX()) != base.getX())
      return rewriter.notifyMatchFailure(add, "the adapter reads another value");
    for (Operation *op : {base.getOperation(), scale.getOperation(),
                          up.getOperation(), down.getOperation()})
      if (!op->hasOneUse())
        return rewriter.notifyMatchFailure(op, "has a second use");
    if (!isa<FloatAttr, IntegerAttr>(scale.getFactor()))
      return rewriter.notifyMatchFailure(scale, "the factor is not bound");
    int64_t outputs =
        cast<RankedTensorType>(base.getY().getType()).getDimSize(1);
    rewriter.setInsertionPoint(add);
    auto lora = tfm::LoraLinearOp::create(
        rewriter, base.getLoc(), base.getX(), base.getW(), down.getW(),
        up.getW(),
        rewriter.getF64FloatAttr(tfm::getBoundFloat(scale.getFactor())),
        rewriter.getDenseI64ArrayAttr(outputs),
        rewriter.getDenseBoolArrayAttr(true),
        dropout ? dropout.getMaskAttr() : tfm::DropoutAttr());
    remarkPassed(base.getLoc(), RemarkId::FuseLora)
        << "adapter joined to its layer"
        << remark::metric("rank", cast<RankedTensorType>(lora.getB().getType())
                                      .getDimSize(1));
    rewriter.replaceOp(add, lora.getY());
    ++fused;
    return success();
  }

  Pass::Statistic &fused;
};

struct FuseLoraPass : fsdpq::impl::TfmFuseLoraBase<FuseLoraPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseAdapter>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
