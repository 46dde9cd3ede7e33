//===- TfmGradients.cpp - Derivative rules --------------------------------===//

#include "dialects/Support/Elements.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace fsdpq::tfm;

/// In f32 where the value is in bf16.
static RankedTensorType getSumType(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.clone(fsdpq::getComputeType(type.getElementType()));
}

/// dy^T x, the gradient of a weight.
static Value buildWeightGradient(GradientBuilder &grad, Value dy, Value x) {
  return MatmulOp::create(grad.builder(), grad.loc(), dy, grad.saved(x),
                          /*trans_a=*/true, /*trans_b=*/false,
                          /*sum=*/getSumType(dy) != dy.getType());
}

void EmbeddingOp::buildGradient(GradientBuilder &grad) {
  if (Value dy = grad.resultGradient(0); dy && grad.needs(1))
    grad.add(1, EmbeddingGradOp::create(grad.builder(), grad.loc(),
                                        getSumType(getTable()), dy,
                                        grad.saved(getIds())));
}

void LinearOp::buildGradient(GradientBuilder &grad) {
  Value dy = grad.resultGradient(0);
  if (!dy)
    return;
  if (grad.needs(0))
    grad.add(0, MatmulOp::create(grad.builder(), grad.loc(), dy,
                                 grad.saved(getW())));
  if (grad.needs(1))
    grad.add(1, buildWeightGradient(grad, dy, getX()));
}

void DropoutOp::buildGradient(GradientBuilder &grad) {
  if (Value dy = grad.resultGradient(0))
    grad.add(0, DropoutOp::create(grad.builder(), grad.loc(), dy, getMaskAttr()));
}

void LoraLinearOp::buildGradient(GradientBuilder &grad) {
  Value dy = grad.resultGradient(0);
  if (!dy)
    return;
  auto op = LoraLinearGradOp::create(
      grad.builder(), grad.loc(), dy, grad.saved(getX()), grad.saved(getU()),
      grad.saved(getW()), grad.saved(getA()), grad.saved(getB()),
      getScaleAttr(), getPartsAttr(), getAdaptedAttr(), getMaskAttr());
  if (grad.needs(0))
    grad.add(0, op.getDx());
  if (grad.needs(1))
    grad.add(1, buildWeightGradient(grad, dy, getX()));
  if (grad.needs(2))
    grad.add(2, op.getDa());
  if (grad.needs(3))
    grad.add(3, op.getDb());
}

void MatmulOp::buildGradient(GradientBuilder &grad) {
  Value dy = grad.resultGradient(0);
  if (!dy)
    return;
  bool transA = getTransA(), transB = getTransB();
  // y = op(a) op(b): d op(a) = dy op(b)^T, d op(b) = op(a)^T dy; a transposed
  // operand takes the transposed product.
  if (grad.needs(0)) {
    Value b = grad.saved(getB());
    grad.add(0, transA ? MatmulOp::create(grad.builder(), grad.loc(), b, dy,
                                          /*trans_a=*/transB, /*trans_b=*/true)
                       : MatmulOp::create(grad.builder(), grad.loc(), dy, b,
                                          /*trans_a=*/false,
                                          /*trans_b=*/!transB));
  }
  if (grad.needs(1)) {
    Value a = grad.saved(getA());
    grad.add(1, transB ? MatmulOp::create(grad.builder(), grad.loc(), dy, a,
                                          /*trans_a=*/true, /*trans_b=*/transA)
                       : MatmulOp::create(grad.builder(), grad.loc(), a, dy,
                                          /*trans_a=*/!transA,
                                          /*trans_b=*/false));
  }
}

/// The normalisation's gradients, from `x`, the value that was normalised.
static void buildNormGradient(GradientBuilder &grad, Value dy, Value x, Value w,
                              Value rstd, unsigned weightOperand,
                              ArrayRef<unsigned> inputOperands) {
  bool inputNeeds = llvm::any_of(
      inputOperands, [&](unsigned operand) { return grad.needs(operand); });
  if (inputNeeds) {
    Value dx = RmsNormGradOp::create(grad.builder(), grad.loc(), dy,
                                     grad.saved(x), grad.saved(w),
                                     grad.saved(rstd), /*plus=*/Value());
    for (unsigned operand : inputOperands)
      if (grad.needs(operand))
        grad.add(operand, dx);
  }
  if (grad.needs(weightOperand))
    grad.add(weightOperand,
             RmsNormWeightGradOp::create(grad.builder(), grad.loc(), dy,
                                         grad.saved(x), grad.saved(rstd)));
}

void RmsNormOp::buildGradient(GradientBuilder &grad) {
  if (Value dy = grad.resultGradient(0))
    buildNormGradient(grad, dy, getX(), getW(), getRstd(), 1, {0});
}

void AddRmsNormOp::buildGradient(GradientBuilder &grad) {
  if (Value dsum = grad.resultGradient(0)) {
    grad.add(0, dsum);
    grad.add(1, dsum);
  }
  if (Value dy = grad.resultGradient(1))
    buildNormGradient(grad, dy, getSum(), getW(), getRstd(), 2, {0, 1});
}

void RopeOp::buildGradient(GradientBuilder &grad) {
  if (Value dy = grad.resultGradient(0); dy && grad.needs(0))
    grad.add(0, RopeOp::create(grad.builder(), grad.loc(), dy,
                               grad.saved(getTable()), getHeads(),
                               /*inverse=*/!getInverse()));
}

void AttentionOp::buildGradient(GradientBuilder &grad) {
  Value dO = grad.resultGradient(0);
  if (!dO)
    return;
  SmallVector<Value> qkv;
  for (Value value : getQkv())
    qkv.push_back(grad.saved(value));
  auto op = AttentionGradOp::create(
      grad.builder(), grad.loc(), qkv, dO, grad.saved(getO()),
      grad.saved(getLse()), grad.saved(getSegments()),
      cast<IntegerAttr>(getHeads()), cast<IntegerAttr>(getKvHeads()),
      cast_or_null<IntegerAttr>(getWindowAttr()),
      getScaleAttr());
  for (auto [index, gradient] : llvm::enumerate(op.getDqkv()))
    if (grad.needs(index))
      grad.add(index, gradient);
}

void SiluOp::buildGradient(GradientBuilder &grad) {
  if (Value dy = grad.resultGradient(0); dy && grad.needs(0))
    grad.add(0, SiluGradOp::create(grad.builder(), grad.loc(), dy,
                                   grad.saved(getX())));
}

void GatedSiluOp::buildGradient(GradientBuilder &grad) {
  Value dy = grad.resultGradient(0);
  if (!dy)
    return;
  SmallVector<Value> saved;
  for (Value value : getGateUp())
    saved.push_back(grad.saved(value));
  auto op = GatedSiluGradOp::create(grad.builder(), grad.loc(), dy, saved);
  for (auto [index, gradient] : llvm::enumerate(op.getDgateUp()))
    if (grad.needs(index))
      grad.add(index, gradient);
}

void AddOp::buildGradient(GradientBuilder &grad) {
  Value dy = grad.resultGradient(0);
  for (unsigned operand : {0, 1})
    if (dy && grad.needs(operand))
      grad.add(operand, dy);
}

void MulOp::buildGradient(GradientBuilder &grad) {
  Value dy = grad.resultGradient(0);
  if (!dy)
    return;
  if (grad.needs(0))
    grad.add(0, MulOp::create(grad.builder(), grad.loc(), dy, grad.saved(getB())));
  if (grad.needs(1))
    grad.add(1, MulOp::create(grad.builder(), grad.loc(), dy, grad.saved(getA())));
}

void ScaleOp::buildGradient(GradientBuilder &grad) {
  if (Value dy = grad.resultGradient(0); dy && grad.needs(0))
    grad.add(0, ScaleOp::create(grad.builder(), grad.loc(), dy, getFactor()));
}

void CastOp::buildGradient(GradientBuilder &grad) {
  Value dy = grad.resultGradient(0);
  if (!dy || !grad.needs(0))
    return;
  // A parameter's gradient is in the parameter's own type already.
  if (dy.getType() != getX().getType())
    dy = CastOp::create(grad.builder(), grad.loc(), getX().getType(), dy);
  grad.add(0, dy);
}

void GatherRowsOp::buildGradient(GradientBuilder &grad) {
  if (Value dy = grad.resultGradient(0); dy && grad.needs(0))
    grad.add(0, ScatterRowsOp::create(grad.builder(), grad.loc(), dy,
                                      grad.saved(getIndex())));
}

void CrossEntropyOp::buildGradient(GradientBuilder &grad) {
  if (Value dloss = grad.resultGradient(0); dloss && grad.needs(0))
    grad.add(0, CrossEntropyGradOp::create(
                    grad.builder(), grad.loc(), grad.saved(getLogits()),
                    grad.saved(getTargets()), grad.saved(getLse()), dloss));
}

void ReportLossOp::buildGradient(GradientBuilder &grad) {
  if (grad.needs(0))
    grad.add(0, SplatOp::create(grad.builder(), grad.loc(),
                                getRows().getType(), getWeight()));
}
