//===- Bodies.h - The kernels that tfm operations become --------*- C++ -*-===//
//
// Each function adds one kern.func at the builder's insertion point and gives
// it. Arguments of the kernel are listed in order, those that are only read first; `?` is a run-time number of
// rows (or elements), `inout` is both read and written. Scalars (f64) and
// extents (i64) come last. Arrays are of `element` (`e`): f32, f64 or bf16, which
// is computed in f32 and rounded once when it is stored. Where that is said in
// brackets, statistics and sums are of the computed type `s`: f32 for bf16. ids
// are i32.
//
// A body is written for any static sizes; that sizes are multiples of something
// only makes it faster. Row counts of activations are multiples of 128, except
// that a program may run one single row (M = 1); kernels whose items are tiles
// of rows are used for the former only.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Kern/Kern.h"
#include "dialects/QT/QT.h"
#include "mlir/IR/Builders.h"

namespace fsdpq::kernels {

/// Rows of one attention work item. Divides 128.
constexpr int64_t attentionTile = 32;

/// Elements of one work item of kernels over flat buffers.
constexpr int64_t flatTile = 1024;

/// (ids: ?, table: V x D, y: ? x D). Items: rows.
kern::FuncOp buildEmbedding(OpBuilder &, Location, int64_t vocabulary,
                            int64_t columns, Type element);

/// (dy: ? x D, ids: ?, inout dtable: V x D [s], rows: i64). dtable[ids[t]] += dy[t]
/// in order of t. Items: tiles of columnTile(columns) columns.
kern::FuncOp buildEmbeddingGrad(OpBuilder &, Location, int64_t vocabulary,
                                int64_t columns, Type element);

/// Columns of one item of kernels that loop over rows: divides `columns`.
int64_t columnTile(int64_t columns);

/// (x: ? x D, [residual: ? x D], w: D, [sum: ? x D], y: ? x D, rstd: ? [s]).
/// Items: rows. The bracketed arguments exist with `addResidual`.
kern::FuncOp buildRmsNorm(OpBuilder &, Location, int64_t columns, Type element,
                          double eps, bool addResidual);

/// (dy: ? x D, x: ? x D, w: D, rstd: ? [s], [plus: ? x D], dx: ? x D). Items:
/// rows.
kern::FuncOp buildRmsNormGrad(OpBuilder &, Location, int64_t columns,
                              Type element, bool addPlus);

/// (dy: ? x D, x: ? x D, rstd: ? [s], inout dw: D [s], rows: i64). dw += ...;
/// items: tiles of columnTile(columns) columns.
kern::FuncOp buildRmsNormWeightGrad(OpBuilder &, Location, int64_t columns,
                                    Type element);

/// (positions: ?, table: ? x E). `frequencies` has E/2 entries: angle =
/// position * frequency in `element`. Items: rows.
kern::FuncOp buildRopeTable(OpBuilder &, Location, ArrayRef<double> frequencies,
                            Type element);

/// (table: ? x E [s], inout x: ? x W). The first `heads` * E columns. Items: rows.
kern::FuncOp buildRope(OpBuilder &, Location, int64_t columns, int64_t headDim,
                       int64_t heads, bool inverse, Type element);

/// Shape of an attention; see tfm.attention. `packed`: one argument holds the
/// columns of q, k and v side by side.
struct AttentionShape {
  int64_t heads, kvHeads, headDim;
  std::optional<int64_t> window;
  double scale;
  bool packed;
  Type element;
};

/// (qkv: ? x (H + 2G)E | q: ? x HE, k: ? x GE, v: ? x GE, segments: ?,
///  o: ? x HE, lse: ? x H [s]). Items: (rows / attentionTile) * H, tile-major:
/// item = tile * H + head.
kern::FuncOp buildAttention(OpBuilder &, Location, const AttentionShape &);

/// (do: ? x HE, o: ? x HE, delta: ? x H [s]). delta = sum of do * o. Items: rows.
kern::FuncOp buildAttentionDelta(OpBuilder &, Location, const AttentionShape &);

/// (qkv | q, k, v, do: ? x HE, lse: ? x H [s], delta: ? x H [s], segments: ?,
///  inout dqkv | dq). Writes the columns of dq. Items as buildAttention.
kern::FuncOp buildAttentionGradQ(OpBuilder &, Location, const AttentionShape &);

/// (qkv | q, k, v, do, lse, delta, segments, inout dqkv | dk, dv, rows: i64).
/// Writes the columns of dk and dv; the query heads of a group in order.
/// Items: (rows / attentionTile) * G, item = tile * G + key head.
kern::FuncOp buildAttentionGradKV(OpBuilder &, Location, const AttentionShape &);

/// (x: ? x D, y: ? x D), (dy, x, dx), (a, b, y), (a, b, y), (x, y).
/// Items: rows.
kern::FuncOp buildSilu(OpBuilder &, Location, int64_t columns, Type element);
kern::FuncOp buildSiluGrad(OpBuilder &, Location, int64_t columns, Type element);
kern::FuncOp buildAdd(OpBuilder &, Location, int64_t columns, Type element);
kern::FuncOp buildMul(OpBuilder &, Location, int64_t columns, Type element);
kern::FuncOp buildScale(OpBuilder &, Location, int64_t columns, double factor,
                        Type element);

/// packed: (gu: ? x 2F, y: ? x F), else (g: ? x F, u: ? x F, y: ? x F).
/// Items: rows.
kern::FuncOp buildGatedSilu(OpBuilder &, Location, int64_t columns /*F*/,
                            bool packed, Type element);

/// packed: (dy: ? x F, gu: ? x 2F, dgu: ? x 2F), else (dy, g, u, dg, du).
kern::FuncOp buildGatedSiluGrad(OpBuilder &, Location, int64_t columns,
                                bool packed, Type element);

/// (x: ? x D, rows: ?, y: ? x D). Items: entries of rows.
kern::FuncOp buildGatherRows(OpBuilder &, Location, int64_t columns, Type element);

/// (dy: ? x D, index: ?, dx: ? x D). Items: entries of index.
kern::FuncOp buildScatterRows(OpBuilder &, Location, int64_t columns, Type element);

/// (logits: ? x V, targets: ?, loss: ? [s], lse: ? [s]). Items: rows.
kern::FuncOp buildCrossEntropy(OpBuilder &, Location, int64_t vocabulary,
                               Type element);

/// (logits: ? x V, targets: ?, lse: ? [s], dloss: ? [s], dlogits: ? x V). Items:
/// rows.
kern::FuncOp buildCrossEntropyGrad(OpBuilder &, Location, int64_t vocabulary,
                                   Type element);

/// (targets: ?, inout logits: ? x V, loss: ? [s], weight: f64). The logits become
/// their gradient. Items: rows.
kern::FuncOp buildFusedCrossEntropy(OpBuilder &, Location, int64_t vocabulary,
                                    Type element);

/// (rows: ?, inout loss: 1, count: i64, weight: f64). loss += weight * sum.
/// One item.
kern::FuncOp buildReportLoss(OpBuilder &, Location, Type element);

/// (x: ? x D, y: ? x D, place: i64, key: f64). y = x / (1 - rate), or 0 for
/// elements that are dropped. `place` tells the places of a model that drop apart,
/// `key`, an integer below 2^52, the micro-batches. Items: rows.
///
/// A row's 64 bits come out of splitmix64 (Steele, Lea, Flood, 2014), and the
/// finaliser of MurmurHash3 (Appleby) stirs in the column; of the 2^32 results the
/// lowest rate * 2^32 drop.
kern::FuncOp buildDropout(OpBuilder &, Location, int64_t columns, double rate,
                          Type element);

/// (x: ?, y: ?). From an element type to another. Items: runs of `width` elements.
kern::FuncOp buildCast(OpBuilder &, Location, int64_t width, Type from, Type to);

/// (y: ?, scalar: f64). Items: elements.
kern::FuncOp buildSplat(OpBuilder &, Location, Type element);

/// (src: N, inout dst: N). dst += src. Items: N / gcd(N, flatTile).
kern::FuncOp buildAccumulate(OpBuilder &, Location, int64_t elements, Type element);

/// plain: (codes: ceil(N/2) x i8, absmax: ? x f32, y: N x e);
/// nested: (codes, absmax_u8: ? x i8, nested_absmax: ? x f32, offset: 1 x f32,
/// y). Items: blocks; the last may be short. Arithmetic: see qt.dequantize.
kern::FuncOp buildDequantize(OpBuilder &, Location, qt::BlockFormat,
                             int64_t elements, Type element);

/// (src: N x f32, codes: ceil(N/2) x i8, absmax: ? x f32). Items: blocks. With
/// `rounded`, values are first rounded to that type. In
/// full blocks values are scaled by 1/absmax, in a short last one divided by it
/// (as bitsandbytes); an all-zero block gives codes of 0. An odd N is padded
/// with the code of 0.
kern::FuncOp buildQuantize(OpBuilder &, Location, qt::BlockFormat,
                           int64_t elements, Type rounded = {});

/// (absmax: B x f32, sum: 1 x f64). One item.
kern::FuncOp buildScaleSum(OpBuilder &, Location, int64_t blocks);

/// (sums: P x f64, offset: 1 x f32). offset = the sum, in order, of the scales'
/// sums over the pieces of a tensor, divided by its number of blocks. One item.
kern::FuncOp buildScaleMean(OpBuilder &, Location, int64_t pieces,
                            int64_t blocks);

/// (absmax: B x f32, offset: 1 x f32, absmax_u8: B x i8, nested_absmax: ? x f32).
/// Items: nested blocks; the last may be short.
kern::FuncOp buildQuantizeScales(OpBuilder &, Location, qt::BlockFormat,
                                 int64_t blocks);

/// (g: N, partial: items x f64). partial[i] = sum of squares of the i-th `tile`
/// elements. Items: N / tile.
kern::FuncOp buildSumSquares(OpBuilder &, Location, int64_t elements,
                             int64_t tile, Type element);

/// (x: N x f64, sums: items x f64). sums[i] = sum of the i-th `tile` elements.
/// Items: N / tile.
kern::FuncOp buildSums(OpBuilder &, Location, int64_t elements, int64_t tile);

/// (partial: (R * L * P) x f64, inout sum: 1 x f64). Adds the partials, which lie
/// as [R, L, P], in the order [L, R, P]: that of the elements, when R ranks have
/// ranges of L layers. The sum starts from 0, or if it `continues` from what is
/// there. One item.
kern::FuncOp buildAddPartials(OpBuilder &, Location, int64_t ranks,
                              int64_t layers, int64_t partials, bool continues);

/// (sum: 1 x f64, norm: 1). norm = sqrt(sum). One item.
kern::FuncOp buildNorm(OpBuilder &, Location, Type element);

/// One optimizer step over a flat buffer of N elements; see
/// tfm.optimizer_update for rules, options and scalars.
/// (norm: 1, inout p: N, inout g: N, [inout state0: N, inout state1: N],
///  max_grad_norm: f64, lr: f64, [bias_correction1: f64, bias_correction2: f64]).
/// The gradients become zero. Items: N / gcd(N, flatTile).
kern::FuncOp buildOptimizer(OpBuilder &, Location, StringRef rule,
                            DictionaryAttr options, int64_t elements,
                            Type element);

/// Matrix product without a library, for element types or sizes it lacks:
/// (a, b, inout c: ? x N, [k: i64]). c = alpha op(a) op(b) + beta c, with
/// beta 0 or 1; c is of `result`. a is ? x K, or with transA (K run-time): ? x M, then c is M x N
/// and the extent k the number of rows of a and b. b is K x N, or with transB
/// N x K; with transA it is ? x N. Items: rows of c.
struct MatmulShape {
  int64_t m, n, k; ///< m is used with transA only, k without it only
  bool transA, transB;
  double alpha, beta;
  Type element, result;
};
kern::FuncOp buildMatmul(OpBuilder &, Location, const MatmulShape &);

} // namespace fsdpq::kernels
