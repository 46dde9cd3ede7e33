//===- VerifyGrad.cpp - tfm-verify-grad -----------------------------------===//

#include "compiler/Grad/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "llvm/ADT/StringSet.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMVERIFYGRAD
#include "compiler/Grad/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct VerifyGradPass : fsdpq::impl::TfmVerifyGradBase<VerifyGradPass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>())
      if (architecture.lookupSymbol<tfm::FuncOp>("micro_step"))
        check(architecture);
  }

private:
  InFlightDiagnostic report(Operation *op) {
    signalPassFailure();
    return op->emitOpError("[FSDPQ-0290] after the grad phase: ");
  }

  template <typename OpT>
  llvm::StringSet<> collect(tfm::ArchitectureOp architecture) {
    llvm::StringSet<> names;
    architecture.walk([&](OpT op) {
      for (auto symbol : op.getParams().template getAsRange<SymbolRefAttr>())
        names.insert(symbol.getLeafReference().getValue());
    });
    return names;
  }

  void check(tfm::ArchitectureOp architecture) {
    auto accumulated = collect<tfm::AccumulateOp>(architecture);
    auto updated = collect<tfm::OptimizerUpdateOp>(architecture);
    for (auto param : architecture.getBody().getOps<tfm::ParamOp>()) {
      StringRef name = param.getSymName();
      if (param.getTrainable() && !accumulated.contains(name))
        report(param) << "@" << name << " is trainable and gets no gradient";
      if (param.getTrainable() && !updated.contains(name))
        report(param) << "@" << name << " is trainable and is never updated";
      if (!param.getTrainable() &&
          (accumulated.contains(name) || updated.contains(name)))
        report(param) << "@" << name << " is frozen and gets a gradient";
    }
    architecture.walk([&](tfm::StackGradOp grad) {
      auto stack = grad.getSaved().getDefiningOp<tfm::StackOp>();
      if (!stack || stack.getLayersAttr() != grad.getLayersAttr() ||
          stack.getKinds().size() != grad.getKinds().size()) {
        report(grad) << "its residuals are not those of a stack like it";
        return;
      }
      for (auto [forwardName, backwardName] :
           llvm::zip(stack.getKinds().getAsRange<SymbolRefAttr>(),
                     grad.getKinds().getAsRange<SymbolRefAttr>())) {
        auto forward = SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(
            stack, forwardName);
        auto backward = SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(
            grad, backwardName);
        auto residuals = forward.getResultTypes().drop_front();
        auto expected = backward.getArgumentTypes().drop_front().drop_back(
            grad.getShared().size());
        if (residuals != expected)
          report(grad) << forwardName << " keeps " << TypeRange(residuals)
                       << ", " << backwardName << " expects "
                       << TypeRange(expected);
      }
    });
  }
};
} // namespace
