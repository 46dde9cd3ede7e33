//===- Attention.cpp - Causal attention -----------------------------------===//
//
// Softmax with a running maximum over tiles of keys (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", 2022). Scores are kept transposed: lanes are queries, so
// that maxima and sums over keys are sums of vectors.
//
//===----------------------------------------------------------------------===//

#include "compiler/Kernel/Bodies/AttentionParts.h"
#include "compiler/Kernel/Bodies/Families.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;
using arith::CmpIPredicate;

SmallVector<Type> kernels::getQkvTypes(const AttentionShape &shape) {
  int64_t q = shape.heads * shape.headDim, k = shape.kvHeads * shape.headDim;
  if (shape.packed)
    return {rowsOf(shape.element, q + 2 * k)};
  return {rowsOf(shape.element, q), rowsOf(shape.element, k),
          rowsOf(shape.element, k)};
}

static SmallVector<Type> concatenate(SmallVector<Type> first,
                                     TypeRange second) {
  llvm::append_range(first, second);
  return first;
}

static std::string describe(const AttentionShape &shape) {
  std::string text = (Twine(shape.packed ? "_packed_" : "_") +
                      Twine(shape.heads) + "_" + Twine(shape.kvHeads) + "_" +
                      Twine(shape.headDim) + "_" + nameOf(shape.element))
                         .str();
  if (shape.window)
    text += ("_window" + Twine(*shape.window)).str();
  return text;
}

AttentionBody::AttentionBody(OpBuilder &outer, Location loc, const Twine &name,
                             const AttentionShape &shape, TypeRange others)
    : BodyBuilder(outer, loc, name + describe(shape),
                  concatenate(getQkvTypes(shape), others), shape.element),
      shape(shape) {}

int64_t AttentionBody::packedBegin(unsigned part) {
  int64_t parts[] = {0, shape.heads, shape.heads + shape.kvHeads};
  return parts[part] * shape.headDim;
}

HeadColumns AttentionBody::columnsOf(unsigned part) {
  if (shape.packed)
    return {argument(0), packedBegin(part)};
  return {argument(part)};
}

static Value getColumn(AttentionBody &b, HeadColumns columns, Value head) {
  return b.add(b.mul(head, b.index(b.shape.headDim)), b.index(columns.begin));
}

Value AttentionBody::loadHead(HeadColumns columns, Value row, Value head) {
  return load(columns.memref, {row, getColumn(*this, columns, head)},
              {attentionTile, shape.headDim});
}

void AttentionBody::storeHead(Value tile, HeadColumns columns, Value row,
                              Value head) {
  store(tile, columns.memref, {row, getColumn(*this, columns, head)});
}

Value AttentionBody::loadColumn(Value memref, Value row, Value head) {
  Value column = load(memref, {row, head}, {attentionTile, 1});
  AffineMap first = AffineMap::get(
      1, 0, {getAffineDimExpr(0), getAffineConstantExpr(0)}, getContext());
  return generic({{column, first}},
                 {{empty(attentionTile), dims({0}, 1)}},
                 [](ValueRange v) { return SmallVector<Value>{v[0]}; })[0];
}

Value AttentionBody::firstVisible(Value segments, Value row) {
  Value starts = load(segments, row, attentionTile);
  if (!shape.window)
    return starts;
  return mapAll(starts, getI32Type(), [&](ValueRange v) {
    Value query = add(row, linalg::IndexOp::create(*this, 0));
    Value oldest = sub(query, index(*shape.window - 1));
    Value first = arith::MaxSIOp::create(*this, v[0], toI32(oldest));
    return SmallVector<Value>{first};
  })[0];
}

kern::FuncOp kernels::buildAttention(OpBuilder &builder, Location loc,
                                     const AttentionShape &shape) {
  constexpr int64_t size = attentionTile;
  int64_t width = shape.headDim;
  AttentionBody b(builder, loc, "attention", shape,
                  {rowsOf(builder.getI32Type()),
                   rowsOf(shape.element, shape.heads * width),
                   rowsOf(getComputeType(shape.element), shape.heads)});
  Value segments = b.other(0);
  Value head = b.remainder(b.item(), shape.heads);
  Value keyHead = b.quotient(head, shape.heads / shape.kvHeads);
  Value row = b.mul(b.quotient(b.item(), shape.heads), b.index(size));
  Value first = b.firstVisible(segments, row);
  // Segments never decrease: no query of the tile sees less than the first.
  Value begin = b.toIndex(b.extract(first, b.index(0)));
  begin = b.mul(b.quotient(begin, size), b.index(size));
  Value end = b.add(row, b.index(size));

  Value qt =
      b.map(b.transpose(b.loadHead(b.query(), row, head)),
            [&](ValueRange v) { return b.mul(v[0], b.real(shape.scale)); });
  // Low enough to vanish beside a score, and finite: differences are no NaN.
  // What a query sums up before it meets its first key is scaled by exp(lowest)
  // then, which is 0.
  Value lowest = b.real(-1.0e30);
  AffineMap line = b.dims({0}, 1), matrix = b.dims({0, 1}, 2),
            lanes = b.dims({1}, 2);
  Value maxima = b.fill(size, lowest), sums = b.fill(size, b.real(0)),
        ot = b.fill({width, size}, b.real(0));
  auto results = b.loop(
      begin, end, size, {maxima, sums, ot},
      [&](Value keys, ValueRange carried) {
        Value k = b.loadHead(b.key(), keys, keyHead);
        Value v = b.loadHead(b.value(), keys, keyHead);
        Value st =
            b.contract(k, {0, 2}, qt, {2, 1}, b.fill({size, size}, b.real(0)));
        Value masked = b.generic(
            {{st, matrix}, {first, lanes}}, {{b.empty({size, size}), matrix}},
            [&](ValueRange values) {
              Value key = b.toI32(b.add(keys, linalg::IndexOp::create(b, 0)));
              Value query = b.toI32(b.add(row, linalg::IndexOp::create(b, 1)));
              Value isVisible = arith::AndIOp::create(
                  b, b.compare(CmpIPredicate::sle, key, query),
                  b.compare(CmpIPredicate::sge, key, values[1]));
              return SmallVector<Value>{b.select(isVisible, values[0], lowest)};
            })[0];
        Value newMaxima = b.generic(
            {{masked, matrix}}, {{carried[0], lanes}}, [&](ValueRange values) {
              return SmallVector<Value>{b.maxStep(values[1], values[0])};
            })[0];
        Value decay = b.map({carried[0], newMaxima}, [&](ValueRange values) {
          return b.exp(b.sub(values[0], values[1]));
        });
        Value pt = b.generic(
            {{masked, matrix}, {newMaxima, lanes}},
            {{b.empty({size, size}), matrix}}, [&](ValueRange values) {
              return SmallVector<Value>{b.exp(b.sub(values[0], values[1]))};
            })[0];
        Value decayed = b.map({carried[1], decay}, [&](ValueRange values) {
          return b.mul(values[0], values[1]);
        });
        Value newSums = b.generic(
            {{pt, matrix}}, {{decayed, lanes}}, [&](ValueRange values) {
              return SmallVector<Value>{b.sumStep(values[1], values[0])};
            })[0];
        Value scaled = b.generic(
            {{decay, lanes}}, {{carried[2], matrix}}, [&](ValueRange values) {
              return SmallVector<Value>{b.mul(values[1], values[0])};
            })[0];
        Value newOt = b.contract(v, {2, 0}, pt, {2, 1}, scaled);
        return SmallVector<Value>{newMaxima, newSums, newOt};
      });

  Value normalized =
      b.generic({{results[2], matrix}, {results[1], lanes}},
                {{b.empty({width, size}), matrix}}, [&](ValueRange values) {
                  return SmallVector<Value>{b.div(values[0], values[1])};
                })[0];
  b.storeHead(b.transpose(normalized), {b.other(1)}, row, head);
  Value lse = b.generic({{results[0], line}, {results[1], line}},
                        {{b.empty(size), line}}, [&](ValueRange values) {
                          Value log = math::LogOp::create(b, values[1]);
                          return SmallVector<Value>{b.add(values[0], log)};
                        })[0];
  b.store(b.reshape(lse, {size, 1}), b.other(2), {row, head});
  return tag(b.getKernel(), AttentionFamily{AttentionFamily::Forward, shape});
}
