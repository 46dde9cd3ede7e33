//===- CrossEntropy.cpp - Losses over a vocabulary ------------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;
using arith::CmpIPredicate;

/// The largest logit and the sum of exp(logit - largest).
static std::pair<Value, Value> emitSoftmaxSums(BodyBuilder &b, Value logits,
                                               Type element) {
  // Below every finite number of either type, and no infinity, which would make
  // differences NaN.
  Value largest = b.max(logits, -3.0e38);
  Value sum = b.sum(logits, element, [&](ValueRange v) {
    return b.exp(b.sub(v[0], largest));
  });
  return {largest, sum};
}

static Value isIgnored(BodyBuilder &b, Value target) {
  return b.compare(CmpIPredicate::slt, target, b.i32(0));
}

kern::FuncOp kernels::buildCrossEntropy(OpBuilder &builder, Location loc,
                                        int64_t vocabulary, Type element) {
  BodyBuilder b(builder, loc,
                "cross_entropy_" + Twine(vocabulary) + "_" + nameOf(element),
                {rowsOf(element, vocabulary), rowsOf(builder.getI32Type()),
                 rowsOf(element), rowsOf(element)},
                element);
  Value row = b.item();
  Value target = b.loadScalar(b.argument(1), row);
  Value logits = b.load(b.argument(0), row, vocabulary);
  auto [largest, sum] = emitSoftmaxSums(b, logits, element);
  Value lse = b.add(Value(math::LogOp::create(b, sum)), largest);
  Value column = b.maxIndex(b.toIndex(target), b.index(0));
  Value loss = b.sub(lse, b.loadScalar(b.argument(0), {row, column}));
  b.storeScalar(b.select(isIgnored(b, target), b.real(0), loss),
                b.argument(2), row);
  b.storeScalar(lse, b.argument(3), row);
  return b.getKernel();
}

/// Takes `amount` from the gradient of the target.
static void emitTargetGradient(BodyBuilder &b, Value gradients, Value row,
                               Value target, Value amount) {
  Value column = b.toIndex(target);
  Value rest = b.sub(b.loadScalar(gradients, {row, column}), amount);
  b.storeScalar(rest, gradients, {row, column});
}

kern::FuncOp kernels::buildCrossEntropyGrad(OpBuilder &builder, Location loc,
                                            int64_t vocabulary, Type element) {
  MemRefType rows = rowsOf(element, vocabulary);
  BodyBuilder b(builder, loc,
                "cross_entropy_grad_" + Twine(vocabulary) + "_" +
                    nameOf(element),
                {rows, rowsOf(builder.getI32Type()), rowsOf(element),
                 rowsOf(element), rows},
                element);
  Value row = b.item(), gradients = b.argument(4);
  Value target = b.loadScalar(b.argument(1), row);
  b.branch(
      isIgnored(b, target),
      [&] { b.store(b.fill(vocabulary, b.real(0)), gradients, row); },
      [&] {
        Value lse = b.loadScalar(b.argument(2), row);
        Value weight = b.loadScalar(b.argument(3), row);
        Value logits = b.load(b.argument(0), row, vocabulary);
        Value gradient = b.map(logits, [&](ValueRange v) {
          return b.mul(b.exp(b.sub(v[0], lse)), weight);
        });
        b.store(gradient, gradients, row);
        emitTargetGradient(b, gradients, row, target, weight);
      });
  return b.getKernel();
}

kern::FuncOp kernels::buildFusedCrossEntropy(OpBuilder &builder, Location loc,
                                             int64_t vocabulary,
                                             Type element) {
  BodyBuilder b(builder, loc,
                "fused_cross_entropy_" + Twine(vocabulary) + "_" +
                    nameOf(element),
                {rowsOf(element, vocabulary), rowsOf(builder.getI32Type()),
                 rowsOf(element), builder.getF64Type()},
                element);
  Value row = b.item(), memref = b.argument(0);
  Value target = b.loadScalar(b.argument(1), row);
  b.branch(
      isIgnored(b, target),
      [&] {
        b.store(b.fill(vocabulary, b.real(0)), memref, row);
        b.storeScalar(b.real(0), b.argument(2), row);
      },
      [&] {
        Value weight = b.toElement(b.argument(3));
        Value logits = b.load(memref, row, vocabulary);
        auto [largest, sum] = emitSoftmaxSums(b, logits, element);
        Value log = math::LogOp::create(b, sum);
        Value chosen = b.loadScalar(memref, {row, b.toIndex(target)});
        b.storeScalar(b.sub(b.add(log, largest), chosen), b.argument(2), row);
        Value factor = b.div(weight, sum);
        Value gradient = b.map(logits, [&, top = largest](ValueRange v) {
          return b.mul(b.exp(b.sub(v[0], top)), factor);
        });
        b.store(gradient, memref, row);
        emitTargetGradient(b, memref, row, target, weight);
      });
  return b.getKernel();
}

kern::FuncOp kernels::buildReportLoss(OpBuilder &builder, Location loc,
                                      Type element) {
  BodyBuilder b(builder, loc, Twine("report_loss_") + nameOf(element),
                {rowsOf(element), arrayOf(element, 1), builder.getI64Type(),
                 builder.getF64Type()},
                element);
  Type f64 = b.getF64Type();
  Value sum = b.loop(b.index(0), b.toIndex(b.argument(2)), 1,
                     b.constant(f64, 0), [&](Value row, ValueRange carried) {
                       Value loss = b.loadScalar(b.argument(0), row);
                       return SmallVector<Value>{
                           b.add(carried[0], b.toFloat(loss, f64))};
                     })[0];
  Value zero = b.index(0);
  Value loss = b.toFloat(b.loadScalar(b.argument(1), zero), f64);
  loss = b.add(loss, b.mul(sum, b.argument(3)));
  b.storeScalar(b.toElement(loss), b.argument(1), zero);
  return b.getKernel();
}
