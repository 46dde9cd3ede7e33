//===- FuseElementwise.cpp - Fewer passes over a tile ---------------------===//

#include "compiler/Target/Cpu/Lowering.h"

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

/// Whether the producer's work would be done exactly once by the consumer.
static bool isWorthFusing(OpOperand *operand) {
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  if (!consumer || !producer || !operand->get().hasOneUse() ||
      producer->getBlock() != consumer->getBlock())
    return false;
  if (isTransposition(consumer) || isTransposition(producer))
    return false;
  // Contractions are recognised by their bare multiply and add.
  if (consumer.getNumReductionLoops() == 1 && consumer.getNumLoops() >= 3)
    return false;
  return consumer.getMatchingIndexingMap(operand).isPermutation();
}

LogicalResult cpu::fuseElementwise(kern::FuncOp kernel) {
  MLIRContext *context = kernel.getContext();
  RewritePatternSet patterns(context);
  linalg::populateLinalgNamedOpsGeneralizationPatterns(patterns);
  linalg::populateElementwiseOpsFusionPatterns(patterns, isWorthFusing);
  // Region simplification would merge blocks only to look for what is not here.
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(kernel, std::move(patterns), config);
}
