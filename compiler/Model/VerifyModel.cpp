//===- VerifyModel.cpp - tfm-verify-model ---------------------------------===//

#include "compiler/Model/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMVERIFYMODEL
#include "compiler/Model/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct VerifyModelPass : fsdpq::impl::TfmVerifyModelBase<VerifyModelPass> {
  using TfmVerifyModelBase::TfmVerifyModelBase;

  void runOnOperation() override {
    auto architectures = getOperation().getOps<tfm::ArchitectureOp>();
    if (!llvm::hasSingleElement(architectures)) {
      getOperation().emitError("[FSDPQ-0190] the module holds ")
          << std::distance(architectures.begin(), architectures.end())
          << " architectures after the model phase, not one";
      signalPassFailure();
    }
    getOperation().walk([&](Operation *op) { check(op); });
  }

private:
  InFlightDiagnostic report(Operation *op) {
    signalPassFailure();
    return op->emitOpError("[FSDPQ-0191] after the model phase: ");
  }

  void check(Operation *op) {
    for (NamedAttribute attribute : op->getAttrs())
      if (auto config = dyn_cast<tfm::ConfigAttr>(attribute.getValue()))
        report(op) << "'" << attribute.getName().getValue()
                   << "' still waits for the configuration's "
                   << config.getName();
    for (Value result : op->getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && !type.hasStaticShape())
        report(op) << "the result " << type << " has an unbound size";
    if (auto param = dyn_cast<tfm::ParamOp>(op)) {
      if (!param.getTensorType().hasStaticShape())
        report(op) << "@" << param.getSymName() << " has an unbound size";
      if (param.getTrainable() &&
          qt::isQuantized(param.getTensorType().getElementType()))
        report(op) << "@" << param.getSymName()
                   << " is quantised and trainable";
    }
    if (auto param = dyn_cast<tfm::ParamOp>(op);
        param && SymbolTable::symbolKnownUseEmpty(param, param->getParentOp()))
      report(op) << "@" << param.getSymName() << " is used nowhere";
    if (auto use = dyn_cast<tfm::UseOp>(op)) {
      bool inLayer = op->getParentOfType<tfm::LayerOp>() != nullptr;
      for (auto symbol : use.getParams().getAsRange<SymbolRefAttr>()) {
        auto param =
            SymbolTable::lookupNearestSymbolFrom<tfm::ParamOp>(op, symbol);
        if (param && param.getPerLayer() && !inLayer)
          report(op) << symbol << " is per-layer but used outside a layer";
      }
    }
    // Rows of a chunk do not know their number among all.
    if (auto loop = dyn_cast<tfm::ChunkLoopOp>(op))
      if (auto body = SymbolTable::lookupNearestSymbolFrom<tfm::FuncOp>(
              loop, loop.getBodyAttr()))
        body.walk([&](tfm::DropoutOp dropout) {
          report(dropout) << "rows of a chunk cannot be dropped";
        });
    if (auto stack = dyn_cast<tfm::StackOp>(op); stack && !stack.getLayers())
      report(op) << "the stack has no layers";
  }
};
} // namespace
