//===- Combiner.cpp - Reductions in any order -----------------------------===//

#include "compiler/Target/Cuda/Families/Combiner.h"

#include "compiler/Target/Cuda/Families/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

/// The identity of an op whose terms may come in any order. Sums and products
/// of floats say so by a flag; the largest and least do not depend on it.
static TypedAttr getIdentity(Operation *op) {
  auto kind = arith::getNeutralElement(op);
  if (!kind)
    return {};
  if (isa<arith::AddFOp, arith::MulFOp>(op)) {
    auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
    if (!flags ||
        !bitEnumContainsAll(flags.getValue(), arith::FastMathFlags::reassoc))
      return {};
  }
  // The neutral element of addition is -0, unless signs of zeros do not matter.
  return *kind;
}

std::optional<SmallVector<Combiner>> cuda::getCombiners(linalg::GenericOp op) {
  Block *block = op.getBlock();
  SmallVector<Combiner> combiners;
  for (auto [sum, value] : llvm::zip(op.getRegionOutputArgs(),
                                     block->getTerminator()->getOperands())) {
    Operation *step = value.getDefiningOp();
    if (!step || step->getBlock() != block || step->getNumOperands() != 2 ||
        !sum.hasOneUse() || *sum.user_begin() != step || !value.hasOneUse())
      return std::nullopt;
    TypedAttr identity = getIdentity(step);
    if (!identity)
      return std::nullopt;
    Value term = step->getOperand(step->getOperand(0) == sum ? 1 : 0);
    combiners.push_back({step, sum, term, getLiteral(identity)});
  }
  for (const Combiner &combiner : combiners) {
    if (llvm::is_contained(op.getRegionOutputArgs(), combiner.term))
      return std::nullopt;
    for (Operation *inner : getSlice(combiner.term, block))
      for (Value operand : inner->getOperands())
        if (llvm::is_contained(op.getRegionOutputArgs(), operand))
          return std::nullopt;
  }
  return combiners;
}
