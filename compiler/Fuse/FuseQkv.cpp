//===- FuseQkv.cpp - tfm-fuse-qkv -----------------------------------------===//

#include "compiler/Fuse/JoinLinears.h"
#include "compiler/Fuse/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMFUSEQKV
#include "compiler/Fuse/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct FuseProjections : OpRewritePattern<tfm::AttentionOp> {
  FuseProjections(MLIRContext *context, Pass::Statistic &fused)
      : OpRewritePattern(context), fused(fused) {}

  LogicalResult matchAndRewrite(tfm::AttentionOp attention,
                                PatternRewriter &rewriter) const override {
    if (attention.getQkv().size() != 3)
      return rewriter.notifyMatchFailure(attention, "already joined");
    auto ropeQ = attention.getQkv()[0].getDefiningOp<tfm::RopeOp>();
    auto ropeK = attention.getQkv()[1].getDefiningOp<tfm::RopeOp>();
    if (!ropeQ || !ropeK || ropeQ.getTable() != ropeK.getTable() ||
        ropeQ.getInverse() || ropeK.getInverse())
      return rewriter.notifyMatchFailure(attention, "q and k rotate apart");
    if (ropeQ.getHeads() != attention.getHeads() ||
        ropeK.getHeads() != attention.getKvHeads())
      return rewriter.notifyMatchFailure(attention, "not all heads rotate");
    if (!ropeQ->hasOneUse() || !ropeK->hasOneUse())
      return rewriter.notifyMatchFailure(attention, "q or k has a second use");
    FailureOr<Value> joined = joinLinears(
        {ropeQ.getX(), ropeK.getX(), attention.getQkv()[2]}, attention, rewriter);
    if (failed(joined))
      return failure();
    rewriter.setInsertionPoint(attention);
    Value rotated = tfm::RopeOp::create(
        rewriter, ropeQ.getLoc(), *joined, ropeQ.getTable(),
        rewriter.getI64IntegerAttr(tfm::getBoundInt(attention.getHeads()) +
                                   tfm::getBoundInt(attention.getKvHeads())),
        /*inverse=*/false);
    auto fusedOp = tfm::AttentionOp::create(
        rewriter, attention.getLoc(), rotated, attention.getSegments(),
        attention.getHeads(), attention.getKvHeads(), attention.getWindowAttr(),
        attention.getScaleAttr());
    remarkPassed(attention.getLoc(), RemarkId::FuseQkv) << "one product for q, k and v";
    rewriter.replaceOp(attention, fusedOp);
    ++fused;
    return success();
  }

  Pass::Statistic &fused;
};

struct FuseQkvPass : fsdpq::impl::TfmFuseQkvBase<FuseQkvPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseProjections>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([](tfm::AttentionOp attention) {
      if (attention.getQkv().size() == 3)
        remarkMissed(attention.getLoc(), RemarkId::FuseQkv)
            << "q, k and v are not products of one value by parameters of one "
               "type, or rotate apart";
    });
  }
};
} // namespace
