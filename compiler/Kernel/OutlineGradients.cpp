//===- OutlineGradients.cpp - Backward operations -------------------------===//

#include "compiler/Kernel/Bodies.h"
#include "compiler/Kernel/Outliner.h"

#include <cmath>

using namespace mlir;
using namespace fsdpq;

void Outliner::outlineRmsNormGrad(tfm::RmsNormGradOp op) {
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildRmsNormGrad(b, loc, columns(op.getX()),
                                         element(op.getX()),
                                         op.getPlus() != nullptr);
      },
      op->getOperands(), empty(op.getLoc(), op.getDx().getType()),
      rows(op.getX()));
  op->replaceAllUsesWith(results);
  op.erase();
}

void Outliner::outlineRmsNormWeightGrad(tfm::RmsNormWeightGradOp op) {
  int64_t width = columns(op.getX());
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildRmsNormWeightGrad(b, loc, width,
                                               element(op.getX()));
      },
      op->getOperands(), getSum(op.getDw()),
      constant(width / kernels::columnTile(width)), rows(op.getX()));
  op->replaceAllUsesWith(results);
  op.erase();
}

void Outliner::outlineEmbeddingGrad(tfm::EmbeddingGradOp op) {
  RankedTensorType table = typeOf(op.getDtable());
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildEmbeddingGrad(b, loc, table.getDimSize(0),
                                           table.getDimSize(1),
                                           element(op.getDy()));
      },
      op->getOperands(), getSum(op.getDtable()),
      constant(table.getDimSize(1) / kernels::columnTile(table.getDimSize(1))),
      rows(op.getDy()));
  op->replaceAllUsesWith(results);
  op.erase();
}

void Outliner::outlineAttentionGrad(tfm::AttentionGradOp op) {
  Location loc = op.getLoc();
  kernels::AttentionShape shape;
  shape.heads = op.getHeads();
  shape.kvHeads = op.getKvHeads();
  shape.headDim = tfm::getHeadDim(op);
  if (op.getWindow())
    shape.window = *op.getWindow();
  shape.scale = op.getScaleAttr() ? tfm::getBoundFloat(op.getScaleAttr())
                                  : 1.0 / std::sqrt(double(shape.headDim));
  shape.packed = op.getQkv().size() == 1;
  shape.element = element(op.getO());
  kern::ExtentAttr tokens = rows(op.getO());

  Value delta = call(
                    loc,
                    [&](OpBuilder &b, Location l) {
                      return kernels::buildAttentionDelta(b, l, shape);
                    },
                    {op.getDo_(), op.getO()},
                    empty(loc, op.getLse().getType()), tokens)
                    .front();
  SmallVector<Value> inputs(op.getQkv());
  inputs.append({op.getDo_(), op.getLse(), delta, op.getSegments()});
  SmallVector<Value> gradients;
  for (Value result : op.getDqkv())
    gradients.push_back(empty(loc, result.getType()));
  int64_t capacity = typeOf(op.getO()).getDimSize(0);
  ResultRange query = call(
      loc,
      [&](OpBuilder &b, Location l) {
        return kernels::buildAttentionGradQ(b, l, shape);
      },
      inputs, gradients[0], tokens.scaled(shape.heads, kernels::attentionTile));
  setAttentionFlops(query, shape, capacity, 3);
  gradients[0] = query.front();
  MutableArrayRef<Value> keyValue = gradients;
  if (!shape.packed)
    keyValue = keyValue.drop_front();
  ResultRange results = call(
      loc,
      [&](OpBuilder &b, Location l) {
        return kernels::buildAttentionGradKV(b, l, shape);
      },
      inputs, keyValue, tokens.scaled(shape.kvHeads, kernels::attentionTile),
      tokens);
  setAttentionFlops(results, shape, capacity, 4);
  llvm::copy(results, keyValue.begin());
  op->replaceAllUsesWith(gradients);
  op.erase();
}

void Outliner::outlineGatedSiluGrad(tfm::GatedSiluGradOp op) {
  SmallVector<Value> outs;
  for (Value result : op.getDgateUp())
    outs.push_back(empty(op.getLoc(), result.getType()));
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildGatedSiluGrad(b, loc, columns(op.getDy()),
                                           op.getGateUp().size() == 1,
                                           element(op.getDy()));
      },
      op->getOperands(), outs, rows(op.getDy()));
  op->replaceAllUsesWith(results);
  op.erase();
}

void Outliner::outlineCrossEntropyGrad(tfm::CrossEntropyGradOp op) {
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildCrossEntropyGrad(b, loc, columns(op.getLogits()),
                                              element(op.getLogits()));
      },
      op->getOperands(), empty(op.getLoc(), op.getDlogits().getType()),
      rows(op.getLogits()));
  op->replaceAllUsesWith(results);
  op.erase();
}
