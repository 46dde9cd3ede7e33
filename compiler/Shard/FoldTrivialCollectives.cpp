//===- FoldTrivialCollectives.cpp - fsdp-fold-trivial-collectives ---------===//

#include "compiler/Shard/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

namespace fsdpq {
#define GEN_PASS_DEF_FSDPFOLDTRIVIALCOLLECTIVES
#include "compiler/Shard/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct FoldTrivialCollectivesPass
    : fsdpq::impl::FsdpFoldTrivialCollectivesBase<FoldTrivialCollectivesPass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      fsdp::MeshOp mesh = fsdp::MeshOp::of(architecture);
      if (!mesh)
        continue;
      if (mesh.isSharded()) {
        remarkMissed(mesh.getLoc(), RemarkId::FoldCollectives)
            << "units are cut over several ranks"
            << remark::metric("shards", mesh.getNumShards());
        continue;
      }
      architecture.walk([&](Operation *op) { foldGather(op); });
      // A deterministic mesh keeps reductions: they are the order of the sum.
      if (!mesh.getDeterministic())
        architecture.walk([&](Operation *op) { foldReduction(op); });
    }
  }

private:
  void foldGather(Operation *op) {
    if (isa<fsdp::ReleaseOp, fsdp::KeepOp>(op)) {
      op->erase();
      ++numFolded;
      return;
    }
    OpBuilder builder(op);
    if (auto kept = dyn_cast<fsdp::KeptOp>(op)) {
      kept.getGathered().replaceAllUsesWith(
          fsdp::LocalOp::create(builder, kept.getLoc(), kept.getUnit()));
      kept.erase();
      ++numFolded;
    } else if (auto wait = dyn_cast<fsdp::WaitOp>(op)) {
      auto start = wait.getPending().getDefiningOp<fsdp::AllGatherStartOp>();
      if (!start)
        return;
      wait.getGathered().replaceAllUsesWith(
          fsdp::LocalOp::create(builder, start.getLoc(), start.getUnit()));
      wait.erase();
      if (start.use_empty())
        start.erase();
      ++numFolded;
    }
  }

  /// Where the range is the whole, gradients are summed where they are kept.
  void foldReduction(Operation *op) {
    if (!isa<fsdp::GradientStartOp, fsdp::ReduceScatterStartOp,
             fsdp::ReduceSumsOp>(op))
      return;
    op->erase();
    ++numFolded;
  }
};
} // namespace
