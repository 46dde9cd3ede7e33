//===- CheckDifferentiable.cpp - tfm-check-differentiable -----------------===//

#include "compiler/Analysis/Activity.h"
#include "compiler/Grad/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMCHECKDIFFERENTIABLE
#include "compiler/Grad/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct CheckDifferentiablePass
    : fsdpq::impl::TfmCheckDifferentiableBase<CheckDifferentiablePass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>())
      if (auto step = architecture.lookupSymbol<tfm::FuncOp>("micro_step"))
        check(step.getBody().front(), {});
  }

private:
  void check(Block &body, ArrayRef<BlockArgument> activeArguments) {
    Activity activity(body, activeArguments);
    for (Operation &op : body.without_terminator()) {
      if (auto stack = dyn_cast<tfm::StackOp>(op)) {
        bool active = activity.isActive(stack.getX()) || hasTrainableLayers(stack);
        for (auto symbol : stack.getKinds().getAsRange<SymbolRefAttr>()) {
          auto layer =
              SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(stack, symbol);
          Block &layerBody = layer.getBody().front();
          check(layerBody, active ? layerBody.getArgument(0)
                                  : ArrayRef<BlockArgument>());
        }
        continue;
      }
      if (!activity.isActive(&op))
        continue;
      if (auto loop = dyn_cast<tfm::ChunkLoopOp>(op)) {
        auto function = SymbolTable::lookupNearestSymbolFrom<tfm::FuncOp>(
            loop, loop.getBodyAttr());
        SmallVector<BlockArgument> arguments;
        for (auto [operand, argument] : llvm::zip(
                 loop.getOperands(), function.getBody().getArguments()))
          if (activity.isActive(operand))
            arguments.push_back(argument);
        check(function.getBody().front(), arguments);
        continue;
      }
      if (isa<tfm::DifferentiableOpInterface>(op))
        continue;
      op.emitError("[FSDPQ-0200] '")
          << op.getName()
          << "' has no derivative rule but trainable parameters reach it";
      signalPassFailure();
    }
  }
};
} // namespace
