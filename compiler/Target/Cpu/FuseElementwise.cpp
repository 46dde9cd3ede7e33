//===- FuseElementwise.cpp - Fewer passes over a tile ---------------------===//

#include "compiler/Target/Cpu/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace fsdpq;

/// Whether the op only moves elements to other places, which vector code does
/// best on its own.
static bool isTransposition(linalg::LinalgOp op) {
  return llvm::hasSingleElement(*op.getBlock()) &&
         llvm::any_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return !map.isIdentity(); });
}

/// Contractions are recognised by their bare multiply and add.
static bool isContraction(linalg::LinalgOp op) {
  return op.getNumReductionLoops() == 1 && op.getNumLoops() >= 3;
}

/// Whether the producer's work would be done exactly once by the consumer.
static bool isWorthFusing(OpOperand *operand) {
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  if (!consumer || !producer || !operand->get().hasOneUse() ||
      producer->getBlock() != consumer->getBlock())
    return false;
  if (isTransposition(consumer) || isTransposition(producer))
    return false;
  if (isContraction(consumer))
    return false;
  return consumer.getMatchingIndexingMap(operand).isPermutation();
}

/// Whether the op widens stored values and does nothing else.
static bool isWidening(linalg::GenericOp op) {
  Block &body = *op.getBlock();
  return op.getNumReductionLoops() == 0 && op.getNumDpsInputs() == 1 &&
         llvm::range_size(body) == 2 && isa<arith::ExtFOp>(body.front()) &&
         llvm::all_of(op.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); });
}

/// Gives each user of widened values a widening of its own: repeated in
/// registers it costs less than a temporary.
static void repeatWidenings(kern::FuncOp kernel) {
  SmallVector<linalg::GenericOp> widenings;
  kernel.walk([&](linalg::GenericOp op) {
    if (isWidening(op) && !op->hasOneUse())
      widenings.push_back(op);
  });
  for (linalg::GenericOp op : widenings) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses()) {
      auto consumer = dyn_cast<linalg::LinalgOp>(use.getOwner());
      if (consumer && consumer->getBlock() == op->getBlock() &&
          !isContraction(consumer) && !isTransposition(consumer))
        uses.push_back(&use);
    }
    // The last user keeps the original.
    bool isLast = uses.size() == llvm::range_size(op->getUses());
    for (OpOperand *use : ArrayRef(uses).drop_front(isLast)) {
      OpBuilder builder(use->getOwner());
      use->set(builder.clone(*op)->getResult(0));
    }
  }
}

LogicalResult cpu::fuseElementwise(kern::FuncOp kernel) {
  repeatWidenings(kernel);
  MLIRContext *context = kernel.getContext();
  RewritePatternSet patterns(context);
  linalg::populateLinalgNamedOpsGeneralizationPatterns(patterns);
  linalg::populateElementwiseOpsFusionPatterns(patterns, isWorthFusing);
  // Region simplification would merge blocks only to look for what is not here.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(kernel, std::move(patterns), config);
}
