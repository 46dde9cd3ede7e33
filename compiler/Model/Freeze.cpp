//===- Freeze.cpp - tfm-freeze --------------------------------------------===//

#include "compiler/Model/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMFREEZE
#include "compiler/Model/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct FreezePass : fsdpq::impl::TfmFreezeBase<FreezePass> {
  using TfmFreezeBase::TfmFreezeBase;

  void runOnOperation() override {
    if (train != "all" && train != "adapters") {
      getOperation().emitError("[FSDPQ-0130] train = '")
          << train << "'; known: all, adapters";
      return signalPassFailure();
    }
    bool any = false;
    WalkResult result = getOperation().walk([&](tfm::ParamOp param) {
      bool trainable = train == "all" || param.getInit().has_value();
      if (trainable && qt::isQuantized(param.getTensorType().getElementType())) {
        param.emitError("[FSDPQ-0131] @")
            << param.getSymName()
            << " is quantised and cannot be trained; train adapters";
        return WalkResult::interrupt();
      }
      param.setTrainable(trainable);
      any |= trainable;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    if (!any) {
      getOperation().emitError(
          "[FSDPQ-0132] nothing is trainable: the model has no adapters");
      return signalPassFailure();
    }
  }
};
} // namespace
