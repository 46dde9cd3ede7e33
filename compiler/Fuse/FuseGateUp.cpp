//===- FuseGateUp.cpp - tfm-fuse-gate-up ----------------------------------===//

#include "compiler/Fuse/JoinLinears.h"
#include "compiler/Fuse/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMFUSEGATEUP
#include "compiler/Fuse/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct FuseProjections : OpRewritePattern<tfm::GatedSiluOp> {
  FuseProjections(MLIRContext *context, Pass::Statistic &fused)
      : OpRewritePattern(context), fused(fused) {}

  LogicalResult matchAndRewrite(tfm::GatedSiluOp gated,
                                PatternRewriter &rewriter) const override {
    if (gated.getGateUp().size() != 2)
      return rewriter.notifyMatchFailure(gated, "already joined");
    FailureOr<Value> joined = joinLinears(
        {gated.getGateUp()[0], gated.getGateUp()[1]}, gated, rewriter);
    if (failed(joined))
      return failure();
    rewriter.setInsertionPoint(gated);
    remarkPassed(gated.getLoc(), RemarkId::FuseGateUp) << "one product for gate and up";
    rewriter.replaceOpWithNewOp<tfm::GatedSiluOp>(gated, *joined);
    ++fused;
    return success();
  }

  Pass::Statistic &fused;
};

struct FuseGateUpPass : fsdpq::impl::TfmFuseGateUpBase<FuseGateUpPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseProjections>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([](tfm::GatedSiluOp gated) {
      if (gated.getGateUp().size() == 2)
        remarkMissed(gated.getLoc(), RemarkId::FuseGateUp)
            << "gate and up are not products of one value by parameters of one "
               "type";
    });
  }
};
} // namespace
