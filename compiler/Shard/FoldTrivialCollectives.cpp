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
      auto meshes = architecture.getBody().getOps<fsdp::MeshOp>();
      if (meshes.empty())
        continue;
      fsdp::MeshOp mesh = *meshes.begin();
      if (mesh.getRanks() != 1) {
        remarkMissed(mesh.getLoc(), RemarkId::FoldCollectives)
            << "units are cut over several ranks"
            << remark::metric("ranks", mesh.getRanks());
        continue;
      }
      architecture.walk([&](Operation *op) { fold(op); });
    }
  }

private:
  void fold(Operation *op) {
    if (isa<fsdp::ReleaseOp, fsdp::ReduceScatterStartOp>(op)) {
      op->erase();
      ++numFolded;
    } else if (auto wait = dyn_cast<fsdp::WaitOp>(op)) {
      auto start = wait.getPending().getDefiningOp<fsdp::AllGatherStartOp>();
      if (!start)
        return;
      OpBuilder builder(start);
      wait.getGathered().replaceAllUsesWith(
          fsdp::LocalOp::create(builder, start.getLoc(), start.getUnit()));
      wait.erase();
      if (start.use_empty())
        start.erase();
      ++numFolded;
    }
  }
};
} // namespace
