//===- Outliner.h - From tfm operations to kernels and products -*- C++ -*-===//
//
// kern-outline's working class. One method an operation, grouped by file:
// OutlineProducts.cpp (linear layers), OutlineGradients.cpp (backward),
// OutlineTraining.cpp (losses, gradient sums, optimizers), Outliner.cpp (the
// rest and what they share).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Kernel/Bodies.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/Kern/Kern.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"
#include "mlir/IR/Builders.h"

namespace fsdpq {

class Outliner {
public:
  /// `rowTokens`: tokens that see each other at most, for costs; 0: all do.
  Outliner(tfm::ArchitectureOp architecture, int64_t rowTokens)
      : architecture(architecture), symbols(architecture),
        builder(architecture.getContext()), rowTokens(rowTokens) {}

  /// Outlines the body of one function or layer.
  LogicalResult run(FunctionOpInterface function);

  int64_t getNumKernels() const { return numKernels; }

private:
  using BuildKernelFn = llvm::function_ref<kern::FuncOp(OpBuilder &, Location)>;

  LogicalResult outline(Operation *op);

  // OutlineProducts.cpp
  void outlineLinear(tfm::LinearOp op);
  void outlineLoraLinear(tfm::LoraLinearOp op);
  void outlineLoraLinearGrad(tfm::LoraLinearGradOp op);
  void outlineMatmul(tfm::MatmulOp op);

  // OutlineGradients.cpp
  void outlineRmsNormGrad(tfm::RmsNormGradOp op);
  void outlineRmsNormWeightGrad(tfm::RmsNormWeightGradOp op);
  void outlineAttentionGrad(tfm::AttentionGradOp op);
  void outlineGatedSiluGrad(tfm::GatedSiluGradOp op);
  void outlineEmbeddingGrad(tfm::EmbeddingGradOp op);
  void outlineCrossEntropyGrad(tfm::CrossEntropyGradOp op);

  // OutlineTraining.cpp
  void outlineCrossEntropy(tfm::CrossEntropyOp op);
  void outlineFusedCrossEntropy(tfm::FusedCrossEntropyOp op);
  void outlineReportLoss(tfm::ReportLossOp op);
  void outlineAccumulate(tfm::AccumulateOp op);
  LogicalResult outlineGradNorm(tfm::GradNormOp op);
  LogicalResult outlineUpdate(tfm::OptimizerUpdateOp op);

  // Outliner.cpp
  void outlineNorm(Operation *op, ValueRange inputs, Value w, Attribute eps,
                   bool addResidual);
  LogicalResult outlineRopeTable(tfm::RopeTableOp op);
  void outlineRope(tfm::RopeOp op);
  void outlineCast(tfm::CastOp op);
  void outlineAttention(tfm::AttentionOp op);
  /// `products` matrix products over all pairs of tokens that see each other.
  void setAttentionFlops(ResultRange results, const kernels::AttentionShape &shape,
                         int64_t tokens, int64_t products);

  /// Adds a kernel under a name of its own.
  kern::FuncOp addKernel(Location loc, BuildKernelFn build);

  /// Calls a kernel built by `build`; results are the destinations afterwards.
  ResultRange call(Location loc, BuildKernelFn build, ValueRange inputs,
                   ValueRange outs, kern::ExtentAttr grid,
                   ArrayRef<Attribute> extents = {},
                   ArrayRef<StringRef> scalars = {},
                   ArrayRef<int64_t> outOffsets = {});

  /// Part of a matrix as an operand of a product.
  struct Matrix {
    Value value;
    int64_t pitch;
    int64_t offset = 0;
    bool transposed = false;
  };
  /// Dropout of `x`, by the scalar "dropout_key" and the number of the layer.
  Value dropSome(Location loc, Value x, tfm::DropoutAttr mask);

  Value gemm(Location loc, Matrix a, Matrix b, Matrix c, kern::ExtentAttr m,
             kern::ExtentAttr n, kern::ExtentAttr k, double alpha, bool add);

  /// Where a result is written.
  struct Destination {
    Value value;
    bool accumulate; ///< it holds a gradient to be added to
  };
  /// The gradient a result is added to, when `tfm.accumulate` is its only use
  /// (which is then gone), otherwise an empty tensor.
  Destination getDestination(Value result);
  /// The same for kernels that can only add: an empty tensor is zeroed first.
  Value getSum(Value result);

  Value empty(Location loc, Type type);
  /// The value of a weight as a plain tensor of `element`.
  Value getPlainWeight(Value weight, Type element);

  kern::ExtentAttr constant(int64_t value);
  /// Rows (first dimension) of a value.
  kern::ExtentAttr rows(Value value);

  static RankedTensorType typeOf(Value value) {
    return cast<RankedTensorType>(value.getType());
  }
  /// Columns of a matrix; a vector is a matrix of one column.
  static int64_t columns(Value value) {
    return typeOf(value).getRank() > 1 ? typeOf(value).getDimSize(1) : 1;
  }
  static Type element(Value value) { return typeOf(value).getElementType(); }

  tfm::ArchitectureOp architecture;
  SymbolTable symbols;
  OpBuilder builder;
  llvm::DenseMap<Value, Value> plainWeights; ///< of the current function
  int64_t rowTokens;
  int64_t numKernels = 0;
};

} // namespace fsdpq
