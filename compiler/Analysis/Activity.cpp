#include "compiler/Analysis/Activity.h"

using namespace mlir;
using namespace fsdpq;

bool fsdpq::isTrainable(tfm::UseOp use) {
  return llvm::all_of(
      use.getParams().getAsRange<SymbolRefAttr>(), [&](SymbolRefAttr symbol) {
        auto param =
            SymbolTable::lookupNearestSymbolFrom<tfm::ParamOp>(use, symbol);
        return param && param.getTrainable();
      });
}

bool fsdpq::hasTrainableLayers(tfm::StackOp stack) {
  return llvm::any_of(
      stack.getKinds().getAsRange<SymbolRefAttr>(), [&](SymbolRefAttr symbol) {
        auto layer =
            SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(stack, symbol);
        return layer && layer
                            .walk([](tfm::UseOp use) {
                              return isTrainable(use) ? WalkResult::interrupt()
                                                      : WalkResult::advance();
                            })
                            .wasInterrupted();
      });
}

Activity::Activity(Block &body, ArrayRef<BlockArgument> activeArguments) {
  active.insert(activeArguments.begin(), activeArguments.end());
  for (Operation &op : body) {
    bool isSource = false;
    if (auto use = dyn_cast<tfm::UseOp>(op))
      isSource = isTrainable(use);
    else if (auto stack = dyn_cast<tfm::StackOp>(op))
      isSource = hasTrainableLayers(stack);
    if (isSource || isActive(&op))
      active.insert(op.result_begin(), op.result_end());
  }
}
