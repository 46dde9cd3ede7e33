//===- ExpandMath.cpp - Math functions as arithmetic ----------------------===//

#include "compiler/Target/Cpu/Lowering.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace fsdpq;

void cpu::expandMath(func::FuncOp function) {
  RewritePatternSet patterns(function.getContext());
  // Of f32 only; f64 stays with libm.
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return name == "math.exp" || name == "math.log" || name == "math.tanh" ||
           name == "math.erf";
  });
  // bf16 conversions in integer arithmetic: the same bits on every CPU
  // (vcvtneps2bf16 flushes denormals), and no call into a run-time library.
  arith::populateExpandBFloat16Patterns(patterns);
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  (void)applyPatternsGreedily(function, std::move(patterns), config);
}
