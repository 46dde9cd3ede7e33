//===- SkipDropout.cpp - tfm-skip-dropout ---------------------------------===//

#include "compiler/Grad/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "llvm/ADT/SetVector.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMSKIPDROPOUT
#include "compiler/Grad/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

/// `program` and the layers and functions that it runs.
static llvm::SetVector<Operation *> findReached(tfm::FuncOp program) {
  llvm::SetVector<Operation *> reached;
  reached.insert(program);
  for (size_t i = 0; i < reached.size(); ++i)
    if (auto uses = SymbolTable::getSymbolUses(reached[i]))
      for (SymbolTable::SymbolUse use : *uses)
        if (Operation *target = SymbolTable::lookupNearestSymbolFrom(
                program, use.getSymbolRef());
            isa_and_nonnull<tfm::LayerOp, tfm::FuncOp>(target))
          reached.insert(target);
  return reached;
}

namespace {
struct SkipDropoutPass : fsdpq::impl::TfmSkipDropoutBase<SkipDropoutPass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      llvm::SetVector<Operation *> trained;
      if (auto program = architecture.lookupSymbol<tfm::FuncOp>("micro_step"))
        trained = findReached(program);
      for (Operation &function : architecture.getBody().front())
        if (isa<tfm::LayerOp, tfm::FuncOp>(function) &&
            !trained.contains(&function))
          skip(&function);
    }
  }

private:
  void skip(Operation *function) {
    function->walk([&](Operation *op) {
      if (auto dropout = dyn_cast<tfm::DropoutOp>(op)) {
        dropout.getY().replaceAllUsesWith(dropout.getX());
        dropout.erase();
        ++numSkipped;
      } else if (auto lora = dyn_cast<tfm::LoraLinearOp>(op);
                 lora && lora.removeMaskAttr()) {
        ++numSkipped;
      }
    });
  }
};
} // namespace
