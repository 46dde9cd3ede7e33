//===- Attention.h - CUDA texts of attention --------------------*- C++ -*-===//
//
// Causal attention over the tokens of a micro-batch end to end, with segments.
// For row t (a token) `segments[t]` (i32, never decreasing) is the first row of
// its segment: it sees the rows max(segments[t], t - window + 1) to t. The number
// of rows is a multiple of 128 known at launch: items / heads * 32. Rows of
// padding at the end are segments of their own or belong to one; they are
// computed like all others.
//
// Arguments of the kernels, in the order of compiler/Kernel/Bodies.h (bf16 but
// where said): with `packed` one matrix whose rows hold q, k and v side by side
// (H E, then G E, then G E columns), else q, k, v apart. H = heads, G = kvHeads,
// E = headDim; query head h uses key head h / (H / G).
//   forward: qkv | q, k, v; segments; o: ? x H E; lse: ? x H f32
//   delta:   do, o: ? x H E; delta: ? x H f32
//   gradQ:   qkv | q, k, v; do; lse; delta; segments; dqkv | dq
//   gradKV:  qkv | q, k, v; do; lse; delta; segments; dqkv | dk, dv; rows: i64
// lse[t, h] = natural logarithm of the sum of exp(scale * q.k). Work items of
// forward and gradQ: rows / 32 * H, of gradKV: rows / 32 * G, of delta: rows.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Architecture.h"
#include "compiler/Target/Cuda/KernelText.h"

namespace fsdpq::cuda {

struct AttentionParams {
  int64_t heads, kvHeads, headDim;
  int64_t window = 0; ///< 0: none
  double scale;
  bool packed;

  int64_t qPitch() const { return packed ? (heads + 2 * kvHeads) * headDim : heads * headDim; }
  int64_t kvPitch() const { return packed ? qPitch() : kvHeads * headDim; }
  int64_t kColumn() const { return packed ? heads * headDim : 0; }
  int64_t vColumn() const { return packed ? (heads + kvHeads) * headDim : 0; }
};

/// Head dims 64 and 128, sm_90a, no window: TMA, wgmma, warp specialisation.
bool hasWgmmaAttention(const AttentionParams &, const Architecture &);
KernelText emitWgmmaAttention(const AttentionParams &);
KernelText emitWgmmaAttentionGradQ(const AttentionParams &);
KernelText emitWgmmaAttentionGradKV(const AttentionParams &);

/// Head dims that are multiples of 8 up to 256, sm_80 and later: mma.sync and
/// cp.async. What is no multiple of 64 (or 80, 96) is padded with zeros on chip.
bool hasMmaAttention(const AttentionParams &, const Architecture &);
KernelText emitMmaAttention(const AttentionParams &, const Architecture &);
KernelText emitMmaAttentionGradQ(const AttentionParams &, const Architecture &);
KernelText emitMmaAttentionGradKV(const AttentionParams &, const Architecture &);

/// Head dims that are multiples of 8 up to 256.
KernelText emitAttentionDelta(const AttentionParams &);

} // namespace fsdpq::cuda
