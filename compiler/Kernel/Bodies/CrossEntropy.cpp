//===- CrossEntropy.cpp - Losses over a vocabulary ------------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"
#include "compiler/Kernel/Bodies/Families.h"

#include "dialects/Support/Elements.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;
using arith::CmpIPredicate;

/// Logits that are worked on while they are in the first-level cache.
static constexpr int64_t logitTile = 2048;

/// Below every number a logit can be, and no infinity, which would make
/// differences NaN.
static constexpr double lowest = -3.0e38;

/// sum(exp(logits - largest))
static Value sumTile(BodyBuilder &b, Value logits, Value largest) {
  return b.sum(logits, largest.getType(),
               [&](ValueRange v) { return b.exp(b.sub(v[0], largest)); });
}

/// The logarithm of the sum of a row's exponentials. Sums are rescaled when a tile
/// has a larger logit: one pass over memory.
static Value emitLogSum(BodyBuilder &b, Value logits, Value row,
                        int64_t vocabulary) {
  auto sums =
      b.tiles(vocabulary, logitTile, {b.real(lowest), b.real(0)},
              [&](Value begin, int64_t size, ValueRange carried) {
                Value tile = b.load(logits, {row, begin}, size);
                Value largest = b.maxStep(carried[0], b.max(tile, lowest));
                Value decay = b.exp(b.sub(carried[0], largest));
                Value sum = b.add(b.mul(carried[1], decay),
                                  sumTile(b, tile, largest));
                return SmallVector<Value>{largest, sum};
              });
  return b.add(Value(math::LogOp::create(b, sums[1])), sums[0]);
}

static Value isIgnored(BodyBuilder &b, Value target) {
  return b.compare(CmpIPredicate::slt, target, b.i32(0));
}

kern::FuncOp kernels::buildCrossEntropy(OpBuilder &builder, Location loc,
                                        int64_t vocabulary, Type element) {
  BodyBuilder b(builder, loc,
                "cross_entropy_" + Twine(vocabulary) + "_" + nameOf(element),
                {rowsOf(element, vocabulary), rowsOf(builder.getI32Type()),
                 rowsOf(getComputeType(element)),
                 rowsOf(getComputeType(element))},
                element);
  Value row = b.item();
  Value target = b.loadScalar(b.argument(1), row);
  Value lse = emitLogSum(b, b.argument(0), row, vocabulary);
  Value column = b.maxIndex(b.toIndex(target), b.index(0));
  Value loss = b.sub(lse, b.loadScalar(b.argument(0), {row, column}));
  b.storeScalar(b.select(isIgnored(b, target), b.real(0), loss), b.argument(2),
                row);
  b.storeScalar(lse, b.argument(3), row);
  return b.getKernel();
}

static void emitZeros(BodyBuilder &b, Value memref, Value row, int64_t columns,
                      Type element) {
  b.store(b.fill(columns, b.constant(element, 0)), memref, row);
}

/// Takes `amount` from the gradient of the target.
static void emitTargetGradient(BodyBuilder &b, Value gradients, Value row,
                               Value target, Value amount) {
  Value column = b.toIndex(target);
  Value rest = b.sub(b.loadScalar(gradients, {row, column}), amount);
  b.storeScalar(rest, gradients, {row, column});
}

/// The gradients of a row from its logits, rounded once where they are stored in
/// bf16. Logits and gradients may lie in one place.
static void emitGradient(BodyBuilder &b, Value logits, Value gradients, Value row,
                         int64_t vocabulary, Value target, Value lse,
                         Value weight) {
  Value column = b.toIndex(target);
  auto power = [&](Value logit) { return b.exp(b.sub(logit, lse)); };
  // Before the logits may be gone.
  Value chosen = power(b.loadScalar(logits, {row, column}));
  Value tile = b.load(logits, row, vocabulary);
  b.store(b.map(tile, [&](ValueRange v) { return b.mul(power(v[0]), weight); }),
          gradients, row);
  b.storeScalar(b.mul(b.sub(chosen, b.real(1)), weight), gradients,
                {row, column});
}

kern::FuncOp kernels::buildCrossEntropyGrad(OpBuilder &builder, Location loc,
                                            int64_t vocabulary, Type element) {
  MemRefType rows = rowsOf(element, vocabulary);
  BodyBuilder b(builder, loc,
                "cross_entropy_grad_" + Twine(vocabulary) + "_" +
                    nameOf(element),
                {rows, rowsOf(builder.getI32Type()),
                 rowsOf(getComputeType(element)),
                 rowsOf(getComputeType(element)), rows},
                element);
  Value row = b.item(), gradients = b.argument(4);
  Value target = b.loadScalar(b.argument(1), row);
  b.branch(
      isIgnored(b, target),
      [&] { emitZeros(b, gradients, row, vocabulary, element); },
      [&] {
        Value lse = b.loadScalar(b.argument(2), row);
        Value weight = b.loadScalar(b.argument(3), row);
        if (element.isBF16())
          return emitGradient(b, b.argument(0), gradients, row, vocabulary,
                              target, lse, weight);
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
                                             int64_t vocabulary, Type element) {
  BodyBuilder b(builder, loc,
                "fused_cross_entropy_" + Twine(vocabulary) + "_" +
                    nameOf(element),
                {rowsOf(builder.getI32Type()), rowsOf(element, vocabulary),
                 rowsOf(getComputeType(element)), builder.getF64Type()},
                element);
  Value row = b.item(), memref = b.argument(1);
  Value target = b.loadScalar(b.argument(0), row);
  b.branch(
      isIgnored(b, target),
      [&] {
        emitZeros(b, memref, row, vocabulary, element);
        b.storeScalar(b.real(0), b.argument(2), row);
      },
      [&] {
        Value weight = b.toElement(b.argument(3));
        if (element.isBF16()) {
          Value lse = emitLogSum(b, memref, row, vocabulary);
          Value chosen = b.loadScalar(memref, {row, b.toIndex(target)});
          b.storeScalar(b.sub(lse, chosen), b.argument(2), row);
          return emitGradient(b, memref, memref, row, vocabulary, target, lse,
                              weight);
        }
        Value largest = b.max(b.load(memref, row, vocabulary), lowest);
        Value chosen = b.loadScalar(memref, {row, b.toIndex(target)});
        // The exponentials take the logits' place: they are computed once. In
        // bf16 they would lose digits there.
        Value sum =
            b.tiles(vocabulary, logitTile, b.real(0),
                    [&](Value begin, int64_t size, ValueRange carried) {
                      Value logits = b.load(memref, {row, begin}, size);
                      b.store(b.map(logits,
                                    [&](ValueRange v) {
                                      return b.exp(b.sub(v[0], largest));
                                    }),
                              memref, {row, begin});
                      Value powers = b.load(memref, {row, begin}, size);
                      Value part = b.sum(powers, element,
                                         [](ValueRange v) { return v[0]; });
                      return SmallVector<Value>{b.add(carried[0], part)};
                    })[0];
        Value log = math::LogOp::create(b, sum);
        b.storeScalar(b.sub(b.add(log, largest), chosen), b.argument(2), row);
        Value factor = b.div(weight, sum);
        Value powers = b.load(memref, row, vocabulary);
        b.store(
            b.map(powers, [&](ValueRange v) { return b.mul(v[0], factor); }),
            memref, row);
        emitTargetGradient(b, memref, row, target, weight);
      });
  return tag(b.getKernel(), CrossEntropyFamily{vocabulary, element});
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
