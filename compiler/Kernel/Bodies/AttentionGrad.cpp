//===- AttentionGrad.cpp - Gradient of causal attention -------------------===//
//
// With P = exp(S - lse): dV = P^T dO, dP = dO V^T, dS = P * (dP - delta),
// dQ = scale dS K, dK = scale dS^T Q, where delta is the row sum of dO * O
// (Dao et al., "FlashAttention", 2022, appendix B). One kernel has queries as
// lanes and sums over keys, the other keys as lanes and sums over queries, so
// neither shares a result between items.
//
//===----------------------------------------------------------------------===//

#include "compiler/Kernel/Bodies/AttentionParts.h"
#include "compiler/Kernel/Bodies/Families.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;
using arith::CmpIPredicate;

kern::FuncOp kernels::buildAttentionDelta(OpBuilder &builder, Location loc,
                                          const AttentionShape &shape) {
  int64_t heads = shape.heads, width = shape.headDim;
  MemRefType rows = rowsOf(shape.element, heads * width);
  BodyBuilder b(builder, loc,
                "attention_delta_" + Twine(heads) + "x" + Twine(width) + "_" +
                    nameOf(shape.element),
                {rows, rows, rowsOf(getComputeType(shape.element), heads)},
                shape.element);
  // Head by head: a reduction to a scalar stays in registers.
  b.loop(b.index(0), b.index(heads), 1, [&](Value head) {
    Value column = b.mul(head, b.index(width));
    Value gradient = b.load(b.argument(0), {b.item(), column}, width);
    Value o = b.load(b.argument(1), {b.item(), column}, width);
    Value delta = b.sum({gradient, o}, getComputeType(shape.element),
                        [&](ValueRange v) { return b.mul(v[0], v[1]); });
    b.storeScalar(delta, b.argument(2), {b.item(), head});
  });
  return tag(b.getKernel(), AttentionFamily{AttentionFamily::Delta, shape});
}

/// Types of dO, lse, delta and segments.
static SmallVector<Type> getGradientInputs(const AttentionShape &shape) {
  Type statistic = getComputeType(shape.element);
  return {rowsOf(shape.element, shape.heads * shape.headDim),
          rowsOf(statistic, shape.heads), rowsOf(statistic, shape.heads),
          rowsOf(IntegerType::get(shape.element.getContext(), 32))};
}

namespace {

/// Which dimension of the tile of scores are queries.
enum class Lanes { Queries, Keys };

/// P and dS of one tile of scores.
struct ScoreGradients {
  Value p, ds;
};

} // namespace

/// From the scaled scores and dP; `lse`, `delta` and `first` belong to the
/// queries. What a query does not see is exactly 0.
static ScoreGradients emitScoreGradients(AttentionBody &b, Lanes lanes,
                                         Value scores, Value dp, Value lse,
                                         Value delta, Value first,
                                         Value queries, Value keys) {
  constexpr int64_t size = attentionTile;
  unsigned queryDim = lanes == Lanes::Queries ? 1 : 0;
  AffineMap matrix = b.dims({0, 1}, 2), query = b.dims({queryDim}, 2);
  auto results = b.generic(
      {{scores, matrix},
       {dp, matrix},
       {lse, query},
       {delta, query},
       {first, query}},
      {{b.empty({size, size}), matrix}, {b.empty({size, size}), matrix}},
      [&](ValueRange v) {
        Value i = b.toI32(b.add(queries, linalg::IndexOp::create(b, queryDim)));
        Value j =
            b.toI32(b.add(keys, linalg::IndexOp::create(b, 1 - queryDim)));
        Value isVisible =
            arith::AndIOp::create(b, b.compare(CmpIPredicate::sle, j, i),
                                  b.compare(CmpIPredicate::sge, j, v[4]));
        Value p = b.select(isVisible, b.exp(b.sub(v[0], v[2])), b.real(0));
        return SmallVector<Value>{p, b.mul(p, b.sub(v[1], v[3]))};
      });
  return {results[0], results[1]};
}

static Value emitScaled(AttentionBody &b, Value tile) {
  return b.map(
      tile, [&](ValueRange v) { return b.mul(v[0], b.real(b.shape.scale)); });
}

kern::FuncOp kernels::buildAttentionGradQ(OpBuilder &builder, Location loc,
                                          const AttentionShape &shape) {
  constexpr int64_t size = attentionTile;
  int64_t width = shape.headDim;
  SmallVector<Type> types = getGradientInputs(shape);
  types.push_back(getQkvTypes(shape)[0]);
  AttentionBody b(builder, loc, "attention_grad_q", shape, types);
  Value head = b.remainder(b.item(), shape.heads);
  Value keyHead = b.quotient(head, shape.heads / shape.kvHeads);
  Value row = b.mul(b.quotient(b.item(), shape.heads), b.index(size));
  Value first = b.firstVisible(b.other(3), row);
  Value begin = b.toIndex(b.extract(first, b.index(0)));
  begin = b.mul(b.quotient(begin, size), b.index(size));
  Value end = b.add(row, b.index(size));

  Value qt = emitScaled(b, b.transpose(b.loadHead(b.query(), row, head)));
  Value dot = b.transpose(b.loadHead({b.other(0)}, row, head));
  Value lse = b.loadColumn(b.other(1), row, head);
  Value delta = b.loadColumn(b.other(2), row, head);
  Value dqt = b.fill({width, size}, b.real(0));
  dqt = b.loop(begin, end, size, dqt, [&](Value keys, ValueRange carried) {
    Value k = b.loadHead(b.key(), keys, keyHead);
    Value v = b.loadHead(b.value(), keys, keyHead);
    Value zero = b.fill({size, size}, b.real(0));
    Value st = b.contract(k, {0, 2}, qt, {2, 1}, zero);
    Value dpt = b.contract(v, {0, 2}, dot, {2, 1}, zero);
    Value dst = emitScoreGradients(b, Lanes::Queries, st, dpt, lse, delta,
                                   first, row, keys)
                    .ds;
    return SmallVector<Value>{b.contract(k, {2, 0}, dst, {2, 1}, carried[0])};
  })[0];
  HeadColumns dq = {b.other(4), shape.packed ? b.packedBegin(0) : 0};
  b.storeHead(b.transpose(emitScaled(b, dqt)), dq, row, head);
  return tag(b.getKernel(), AttentionFamily{AttentionFamily::GradQ, shape});
}

/// The end of the tiles of queries that see keys of the tile at `keys`.
static Value emitQueryEnd(AttentionBody &b, Value segments, Value keys,
                          Value rows) {
  constexpr int64_t size = attentionTile;
  Value lastKey = b.add(keys, b.index(size - 1));
  Value start = b.add(keys, b.index(size));
  auto loop = scf::WhileOp::create(
      b, b.getIndexType(), start,
      [&](OpBuilder &nested, Location, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
        Value query = carried[0];
        Value exists = b.compare(CmpIPredicate::slt, query, rows);
        // The first query of a tile sees most of what comes before it.
        auto sees = scf::IfOp::create(b, b.getI1Type(), exists,
                                      /*withElseRegion=*/true);
        b.setInsertionPointToStart(sees.thenBlock());
        Value first = b.toIndex(b.loadScalar(segments, query));
        if (b.shape.window)
          first = b.maxIndex(first, b.sub(query, b.index(*b.shape.window - 1)));
        Value isVisible = b.compare(CmpIPredicate::sle, first, lastKey);
        scf::YieldOp::create(b, isVisible);
        b.setInsertionPointToStart(sees.elseBlock());
        scf::YieldOp::create(b, exists);
        b.setInsertionPointAfter(sees);
        scf::ConditionOp::create(b, sees.getResult(0), carried);
      },
      [&](OpBuilder &nested, Location, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
        scf::YieldOp::create(b, b.add(carried[0], b.index(size)));
      });
  return loop.getResult(0);
}

kern::FuncOp kernels::buildAttentionGradKV(OpBuilder &builder, Location loc,
                                           const AttentionShape &shape) {
  constexpr int64_t size = attentionTile;
  int64_t width = shape.headDim, group = shape.heads / shape.kvHeads;
  SmallVector<Type> types = getGradientInputs(shape);
  types.push_back(getQkvTypes(shape)[shape.packed ? 0 : 1]);
  if (!shape.packed)
    types.push_back(types.back());
  types.push_back(builder.getI64Type());
  AttentionBody b(builder, loc, "attention_grad_kv", shape, types);
  Value segments = b.other(3), rows = b.toIndex(b.other(types.size() - 1));
  Value keyHead = b.remainder(b.item(), shape.kvHeads);
  Value keys = b.mul(b.quotient(b.item(), shape.kvHeads), b.index(size));
  Value end = emitQueryEnd(b, segments, keys, rows);

  Value kt = emitScaled(b, b.transpose(b.loadHead(b.key(), keys, keyHead)));
  Value vt = b.transpose(b.loadHead(b.value(), keys, keyHead));
  Value firstHead = b.mul(keyHead, b.index(group));
  // One loop over the tiles of all heads of the group, head by head.
  Value tiles = b.quotient(b.sub(end, keys), size);
  Value zero = b.fill({width, size}, b.real(0));
  auto sums =
      b.loop(b.index(0), b.mul(tiles, b.index(group)), 1, {zero, zero},
             [&](Value n, ValueRange carried) {
               Value head = b.add(firstHead, b.quotient(n, tiles));
               Value row =
                   b.add(keys, b.mul(b.remainder(n, tiles), b.index(size)));
               Value q = b.loadHead(b.query(), row, head);
               Value gradient = b.loadHead({b.other(0)}, row, head);
               Value scoreZero = b.fill({size, size}, b.real(0));
               Value s = b.contract(q, {0, 2}, kt, {2, 1}, scoreZero);
               Value dp = b.contract(gradient, {0, 2}, vt, {2, 1}, scoreZero);
               ScoreGradients tile = emitScoreGradients(
                   b, Lanes::Keys, s, dp, b.loadColumn(b.other(1), row, head),
                   b.loadColumn(b.other(2), row, head),
                   b.firstVisible(segments, row), row, keys);
               return SmallVector<Value>{
                   b.contract(q, {2, 0}, tile.ds, {2, 1}, carried[0]),
                   b.contract(gradient, {2, 0}, tile.p, {2, 1}, carried[1])};
             });
  HeadColumns dk = {b.other(4), shape.packed ? b.packedBegin(1) : 0};
  HeadColumns dv = {b.other(shape.packed ? 4 : 5),
                    shape.packed ? b.packedBegin(2) : 0};
  b.storeHead(b.transpose(emitScaled(b, sums[0])), dk, keys, keyHead);
  b.storeHead(b.transpose(sums[1]), dv, keys, keyHead);
  return tag(b.getKernel(), AttentionFamily{AttentionFamily::GradKV, shape});
}
