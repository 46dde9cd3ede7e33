//===- KeepGathered.cpp - fsdp-keep-gathered ------------------------------===//

#include "compiler/Shard/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/SymbolTable.h"

namespace fsdpq {
#define GEN_PASS_DEF_FSDPKEEPGATHERED
#include "compiler/Shard/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct KeepGatheredPass : fsdpq::impl::FsdpKeepGatheredBase<KeepGatheredPass> {
  using FsdpKeepGatheredBase::FsdpKeepGatheredBase;

  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      fsdp::MeshOp mesh = fsdp::MeshOp::of(architecture);
      if (!mesh || !mesh.isSharded() || (budget == 0 && !all))
        continue;
      architecture.walk([&](tfm::StackGradOp backward) {
        if (auto forward = backward.getSaved().getDefiningOp<tfm::StackOp>())
          keep(architecture, forward, backward);
      });
    }
  }

private:
  template <typename StackType>
  static tfm::LayerOp getKind(StackType stack, int64_t number) {
    return SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(
        stack, cast<SymbolRefAttr>(stack.getKinds()[number]));
  }

  /// Bytes of the frozen units that both kinds gather.
  static int64_t getKeptBytes(tfm::LayerOp forward, tfm::LayerOp backward) {
    int64_t bytes = 0;
    for (auto start : backward.getBody().getOps<fsdp::AllGatherStartOp>())
      if (gathers(forward, start.getUnit()))
        bytes += *getUnit(start).getBytes();
    return bytes;
  }

  static fsdp::UnitOp getUnit(fsdp::AllGatherStartOp start) {
    return SymbolTable::lookupNearestSymbolFrom<fsdp::UnitOp>(
        start, start.getUnitAttr());
  }

  static bool gathers(tfm::LayerOp layer, StringRef unit) {
    return llvm::any_of(layer.getBody().getOps<fsdp::AllGatherStartOp>(),
                        [&](auto start) { return start.getUnit() == unit; });
  }

  /// From the highest layer down: its weights are needed again soonest.
  void keep(tfm::ArchitectureOp architecture, tfm::StackOp forward,
            tfm::StackGradOp backward) {
    SmallVector<int32_t> layers(backward.getLayers());
    int64_t spent = 0, depth = layers.size(), kept = 0;
    for (; kept < depth; ++kept) {
      int32_t kind = layers[depth - 1 - kept];
      int64_t bytes = getKeptBytes(getKind(forward, kind), getKind(backward, kind));
      if (bytes == 0 || (!all && spent + bytes > budget))
        break;
      spent += bytes;
    }
    if (kept == 0) {
      remarkMissed(forward.getLoc(), RemarkId::KeepGathered)
          << "no layer's weights stay whole: "
          << formatBytes(getKeptBytes(getKind(forward, layers.back()),
                                      getKind(backward, layers.back())))
          << " a layer, " << formatBytes(budget) << " to spend";
      return;
    }
    SymbolTable symbols(architecture);
    llvm::DenseMap<int32_t, int32_t> keptKinds;
    SmallVector<Attribute> forwardKinds(forward.getKinds().begin(),
                                        forward.getKinds().end());
    SmallVector<Attribute> backwardKinds(backward.getKinds().begin(),
                                         backward.getKinds().end());
    for (int32_t &kind : MutableArrayRef(layers).take_back(kept)) {
      auto [place, isNew] = keptKinds.try_emplace(kind, forwardKinds.size());
      if (isNew) {
        tfm::LayerOp layer = clone(symbols, getKind(forward, kind));
        tfm::LayerOp grad = clone(symbols, getKind(backward, kind));
        keep(layer, grad);
        forwardKinds.push_back(FlatSymbolRefAttr::get(layer));
        backwardKinds.push_back(FlatSymbolRefAttr::get(grad));
      }
      kind = place->second;
    }
    Builder builder(&getContext());
    forward.setKindsAttr(builder.getArrayAttr(forwardKinds));
    backward.setKindsAttr(builder.getArrayAttr(backwardKinds));
    forward.setLayersAttr(builder.getDenseI32ArrayAttr(layers));
    backward.setLayersAttr(builder.getDenseI32ArrayAttr(layers));
    numKept += kept;
    remarkPassed(forward.getLoc(), RemarkId::KeepGathered)
        << "weights stay whole for the backward pass: " << formatBytes(spent)
        << remark::metric("layers", kept)
        << remark::metric("bytes", spent);
  }

  static tfm::LayerOp clone(SymbolTable &symbols, tfm::LayerOp layer) {
    auto copy = cast<tfm::LayerOp>(layer->clone());
    copy.setSymName((layer.getSymName() + ".kept").str());
    symbols.insert(copy, std::next(layer->getIterator()));
    return copy;
  }

  void keep(tfm::LayerOp forward, tfm::LayerOp backward) {
    SmallVector<fsdp::AllGatherStartOp> starts(
        backward.getBody().getOps<fsdp::AllGatherStartOp>());
    for (fsdp::AllGatherStartOp start : starts) {
      if (!gathers(forward, start.getUnit()))
        continue;
      auto wait = cast<fsdp::WaitOp>(*start->getUsers().begin());
      OpBuilder builder(wait);
      wait.getGathered().replaceAllUsesWith(
          fsdp::KeptOp::create(builder, wait.getLoc(), start.getUnit()));
      keepIn(forward, start.getUnit());
      wait.erase();
      start.erase();
    }
  }

  void keepIn(tfm::LayerOp forward, StringRef unit) {
    for (auto start : forward.getBody().getOps<fsdp::AllGatherStartOp>()) {
      if (start.getUnit() != unit)
        continue;
      auto wait = cast<fsdp::WaitOp>(*start->getUsers().begin());
      for (Operation *user : wait.getGathered().getUsers())
        if (auto release = dyn_cast<fsdp::ReleaseOp>(user)) {
          OpBuilder builder(release);
          fsdp::KeepOp::create(builder, release.getLoc(), wait.getGathered());
          release.erase();
          break;
        }
    }
  }
};
} // namespace
