//===- MergeKinds.cpp - tfm-merge-kinds -----------------------------------===//

#include "compiler/Model/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/OperationSupport.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMMERGEKINDS
#include "compiler/Model/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

static bool haveEqualBodies(tfm::LayerOp a, tfm::LayerOp b) {
  return a == b ||
         (a.getFunctionType() == b.getFunctionType() &&
          OperationEquivalence::isRegionEquivalentTo(
              &a.getBody(), &b.getBody(),
              OperationEquivalence::IgnoreLocations));
}

namespace {
struct MergeKindsPass : fsdpq::impl::TfmMergeKindsBase<MergeKindsPass> {
  using TfmMergeKindsBase::TfmMergeKindsBase;

  void runOnOperation() override {
    SymbolTableCollection tables;
    getOperation().walk([&](tfm::StackOp stack) {
      if (!stack.getLayers())
        return;
      SmallVector<Attribute> kept;
      SmallVector<int32_t> renamed; // old kind number -> new
      for (auto symbol : stack.getKinds().getAsRange<SymbolRefAttr>()) {
        auto layer = tables.lookupNearestSymbolFrom<tfm::LayerOp>(stack, symbol);
        auto equal = llvm::find_if(kept, [&](Attribute other) {
          return haveEqualBodies(tables.lookupNearestSymbolFrom<tfm::LayerOp>(
                                     stack, cast<SymbolRefAttr>(other)),
                                 layer);
        });
        renamed.push_back(equal - kept.begin());
        if (equal == kept.end())
          kept.push_back(symbol);
        else
          ++numMerged;
      }
      SmallVector<int32_t> layers;
      for (int32_t kind : stack.getLayersAttr().asArrayRef())
        layers.push_back(renamed[kind]);
      stack.setLayers(layers);
      stack.setKindsAttr(ArrayAttr::get(&getContext(), kept));
    });
    // What no stack names any more is gone.
    getOperation().walk([&](tfm::ArchitectureOp architecture) {
      for (auto layer : llvm::make_early_inc_range(
               architecture.getBody().getOps<tfm::LayerOp>()))
        if (SymbolTable::symbolKnownUseEmpty(layer, architecture))
          layer.erase();
    });
  }
};
} // namespace
