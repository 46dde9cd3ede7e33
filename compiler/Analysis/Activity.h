//===- Activity.h - Which values depend on something trainable --*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "dialects/Tfm/Tfm.h"
#include "llvm/ADT/DenseSet.h"

namespace fsdpq {

/// A value is active when a trainable parameter can change it: gradients are
/// built for active values only, so frozen weights get none and nothing is
/// propagated below the lowest trainable parameter of a function.
class Activity {
public:
  /// Follows the operations of `body` from `activeArguments`.
  Activity(Block &body, ArrayRef<BlockArgument> activeArguments);

  bool isActive(Value value) const { return active.contains(value); }
  bool isActive(Operation *op) const {
    return llvm::any_of(op->getOperands(),
                        [&](Value operand) { return isActive(operand); });
  }

private:
  llvm::DenseSet<Value> active;
};

/// Whether every parameter a `tfm.use` names is trainable.
bool isTrainable(tfm::UseOp use);

/// Whether a layer of the stack uses a trainable parameter.
bool hasTrainableLayers(tfm::StackOp stack);

} // namespace fsdpq
