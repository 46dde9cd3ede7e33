//===- WgmmaForward.cpp - Attention forward on wgmma ----------------------===//

#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"
#include "compiler/Target/Cuda/Skeletons/WgmmaPieces.h"

using namespace fsdpq::cuda;

namespace {

constexpr std::string_view kernel = R"(
// ---- the kernel ----
// Persistent blocks. Warpgroup 0: one thread issues all copies. Warpgroups 1 and 2: 64
// query rows each; named barriers 1 and 2 make them alternate (one multiplies while the
// other is at its softmax). Key tiles go from the diagonal down to the first that the
// first row sees. The first product of a tile is issued before the epilogue of the tile
// before.
// Shared memory: two Q tiles, STAGES K and V tiles, each PIECES pieces of 128 rows.
constexpr int STAGES = 2;
constexpr float INF = 1e30f; // more than any score
constexpr int PIECE = 128 * 128, TILE = PIECES * PIECE; // bytes

// S = Q K^T
DEV void scores(float (&s)[64], u32 q, u32 k) {
  const u32 dq = desc_low(q, 16), dk = desc_low(k, 16);
  first_product(s, desc(dq, 0), desc(dk, 0));
#pragma unroll
  for (int i = 1; i < E / 16; i++) add_product(s, desc(dq, (i >> 2) * PIECE + (i & 3) * 32), desc(dk, (i >> 2) * PIECE + (i & 3) * 32));
}
// O += P V
DEV void values(float (&o)[E / 2], const u32 (&p)[8][4], u32 v) {
  const u32 dv = desc_low(v, PIECE);
#pragma unroll
  for (int i = 0; i < 8; i++) add_product(o, p[i], desc(dv, i * 2048));
}
// hides columns after `last` in the thread's first row, after last + 8 in its second
DEV void hide_after(float (&s)[64], int last) {
  const int column = (threadIdx.x & 3) * 2;
#pragma unroll
  for (int i = 0; i < 64; i++)
    if ((i >> 2) * 8 + column + (i & 1) > last + ((i >> 1) & 1) * 8) s[i] = -INF;
}
// hides columns before first0 in the thread's first row, before first1 in its second;
// they may be negative: what they are compared with must be signed
DEV void hide_before(float (&s)[64], int first0, int first1) {
  const int column = (threadIdx.x & 3) * 2;
#pragma unroll
  for (int i = 0; i < 64; i++)
    if ((i >> 2) * 8 + column + (i & 1) < (i & 2 ? first1 : first0)) s[i] = -INF;
}
// m, l: largest score and sum of a row so far; shrink: what the sums so far are worth
DEV void softmax(float (&s)[64], float (&m)[2], float (&l)[2], float (&shrink)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float top = m[r];
#pragma unroll
    for (int n = 0; n < 16; n++) top = fmaxf(top, fmaxf(s[n * 4 + 2 * r], s[n * 4 + 2 * r + 1]));
    top = quad_max(top);
    shrink[r] = ex2((m[r] - top) * SCALE_LOG2);
    m[r] = top;
    const float scaled = top * SCALE_LOG2;
    float even = 0.f, odd = 0.f;
#pragma unroll
    for (int n = 0; n < 16; n++) {
      s[n * 4 + 2 * r] = ex2(fmaf(s[n * 4 + 2 * r], SCALE_LOG2, -scaled));
      s[n * 4 + 2 * r + 1] = ex2(fmaf(s[n * 4 + 2 * r + 1], SCALE_LOG2, -scaled));
      even += s[n * 4 + 2 * r];
      odd += s[n * 4 + 2 * r + 1];
    }
    l[r] = l[r] * shrink[r] + (even + odd);
  }
}
// accumulators become left operands without a shuffle
DEV void pack(u32 (&p)[8][4], const float (&s)[64]) {
#pragma unroll
  for (int i = 0; i < 32; i++) p[i >> 2][i & 3] = bf16x2(s[2 * i], s[2 * i + 1]);
}

extern "C" __global__ void __launch_bounds__(384, 1)
attention_forward(@MATRICES@, const int* segments, u16* out, float* lse, long long items@MAPS@) {
  extern __shared__ __align__(1024) u8 dynamic[];
  // rings of what the producer tells of a tile: segments of its rows; tile (-1: no
  // more) and head. Four entries: a tile is done before the one four later is loaded.
  __shared__ __align__(16) int ring_segments[4][128];
  __shared__ __align__(8) int2 ring[4];
  __shared__ __align__(8) u64 barriers[4 + 4 * STAGES];
  __shared__ __align__(16) u32 keys[MAX_TILES];
  __shared__ u16 order[MAX_TILES];
  const u32 sQ = address(dynamic), sK = sQ + 2 * TILE, sV = sK + STAGES * TILE;
  const u32 full_q = address(barriers), empty_q = full_q + 16, full_k = empty_q + 16, empty_k = full_k + 8 * STAGES, full_v = empty_k + 8 * STAGES,
            empty_v = full_v + 8 * STAGES;
  const int group = uniform(threadIdx.x >> 7), warp = (threadIdx.x >> 5) & 3, lane = threadIdx.x & 31;
  const int tiles = (int)(items / (4 * HEADS));
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
      mb_init(full_q + 8 * i, 1);
      mb_init(empty_q + 8 * i, 8);
    }
    for (int i = 0; i < STAGES; i++) {
      mb_init(full_k + 8 * i, 1);
      mb_init(empty_k + 8 * i, 8);
      mb_init(full_v + 8 * i, 1);
      mb_init(empty_v + 8 * i, 8);
    }
    mb_publish();
  }
  if (tiles <= MAX_TILES) sort_query_tiles(order, keys, segments, tiles);
  __syncthreads();
  if (group == 0) {
    registers_down<24>();
    if (threadIdx.x == 0) {
      Schedule schedule = {order, (u32)tiles, 0};
      int stage = 0, phase = 0;
      for (int turn = 0;; turn++) {
        int head;
        const int tile = schedule.next(head);
        const u32 full = full_q + 8 * (turn & 1);
        mb_wait(empty_q + 8 * (turn & 1), (turn >> 1 & 1) ^ 1);
        ring[turn & 3] = make_int2(tile, head);
        if (tile < 0) {
          mb_arrive(full);
          break;
        }
        mb_expect(full, TILE + 512);
        for (int c = 0; c < PIECES; c++) tma(sQ + (turn & 1) * TILE + c * PIECE, &@Q@, Q_COLUMN + head * E + c * 64, tile * 128, full);
        bulk(address(ring_segments[turn & 3]), segments + tile * 128, 512, full);
        const int column = head / GROUP * E, first = segments[tile * 128] / 128;
#pragma unroll 1
        for (int j = tile; j >= first; j--) {
          mb_wait(empty_k + 8 * stage, phase ^ 1);
          mb_expect(full_k + 8 * stage, TILE);
          for (int c = 0; c < PIECES; c++) tma(sK + stage * TILE + c * PIECE, &@K@, K_COLUMN + column + c * 64, j * 128, full_k + 8 * stage);
          mb_wait(empty_v + 8 * stage, phase ^ 1);
          mb_expect(full_v + 8 * stage, TILE);
          for (int c = 0; c < PIECES; c++) tma(sV + stage * TILE + c * PIECE, &@V@, V_COLUMN + column + c * 64, j * 128, full_v + 8 * stage);
          advance<STAGES>(stage, phase);
        }
      }
    }
  } else {
    registers_up<240>();
    const int w = group - 1, row = w * 64 + warp * 16 + lane / 4; // in the tile
    const u32 rows_q = sQ + w * 64 * 128;
    // key tiles and query tiles taken so far: ring position it % STAGES, phase
    // (it / STAGES) & 1; they run on from tile to tile
    u32 it = 0, turn = 0;
    if (w == 1) bar_arrive(1, 256); // lets the other go first
    mb_wait(full_q, 0);
    if (uniform(ring[0].x) >= 0) {
      float s[64];
      mb_wait(full_k, 0);
      wg_fence();
      scores(s, rows_q, sK);
      wg_commit();
      for (;;) {
        const u32 slot = turn & 3, q = rows_q + (turn & 1) * TILE, free_q = empty_q + 8 * (turn & 1);
        const int tile = uniform(ring[slot].x), first = uniform(ring_segments[slot][0]) / 128;
        const int border = uniform(ring_segments[slot][w * 64 + 63]); // some row does not see the keys before
        float o[E / 2], m[2] = {-INF, -INF}, l[2] = {}, shrink[2];
        u32 p[8][4];
        wg_wait<0>();
        keep(s);
        zero(o);
        if (lane == 0) {
          mb_arrive(empty_k + 8 * (it % STAGES));
          if (tile == first) mb_arrive(free_q);
        }
        it++;
        hide_after(s, row);
        if (tile * 128 < border) hide_before(s, ring_segments[slot][row] - tile * 128, ring_segments[slot][row + 8] - tile * 128);
        softmax(s, m, l, shrink);
        pack(p, s);
        for (int j = tile - 1; j >= first; j--) {
          const u32 ks = it % STAGES, vs = (it - 1) % STAGES; // V is one tile behind K
          mb_wait(full_k + 8 * ks, (it / STAGES) & 1);
          bar_sync(1 + w, 256);
          wg_fence();
          scores(s, q, sK + ks * TILE);
          wg_commit();
          mb_wait(full_v + 8 * vs, ((it - 1) / STAGES) & 1);
          values(o, p, sV + vs * TILE);
          wg_commit();
          bar_arrive(1 + (w ^ 1), 256);
          wg_wait<1>();
          keep(s);
          if (lane == 0) {
            mb_arrive(empty_k + 8 * ks);
            if (j == first) mb_arrive(free_q);
          }
          if (j * 128 < border) hide_before(s, ring_segments[slot][row] - j * 128, ring_segments[slot][row + 8] - j * 128);
          softmax(s, m, l, shrink);
          wg_wait<0>();
          keep(o);
          if (lane == 0) mb_arrive(empty_v + 8 * vs);
          it++;
#pragma unroll
          for (int i = 0; i < E / 2; i++) o[i] *= shrink[(i >> 1) & 1];
          pack(p, s);
        }
        const u32 ks = it % STAGES, vs = (it - 1) % STAGES;
        const int head = uniform(ring[slot].y);
        turn++;
        mb_wait(full_v + 8 * vs, ((it - 1) / STAGES) & 1);
        wg_fence();
        values(o, p, sV + vs * TILE);
        wg_commit();
        mb_wait(full_q + 8 * (turn & 1), (turn >> 1) & 1);
        const bool more = uniform(ring[turn & 3].x) >= 0;
        if (more) mb_wait(full_k + 8 * ks, (it / STAGES) & 1);
        scores(s, rows_q + (turn & 1) * TILE, sK + ks * TILE); // after the last tile: of stale rows, not used
        wg_commit();
        wg_wait<1>();
        keep(o);
        if (lane == 0) mb_arrive(empty_v + 8 * vs);
        float inverse[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
          const float sum = quad_sum(l[r]);
          inverse[r] = 1.f / sum;
          if ((lane & 3) == 0) lse[(u64)(tile * 128 + row + r * 8) * HEADS + head] = m[r] * SCALE + __logf(sum);
        }
        store<O_PITCH>(out + (u64)(tile * 128 + w * 64) * O_PITCH + head * E, o, inverse[0], inverse[1], warp, lane);
        if (!more) break;
      }
      wg_wait<0>();
    }
    if (w == 0) bar_sync(1, 256); // balances the last arrive
  }
}
)";

} // namespace

KernelText fsdpq::cuda::emitWgmmaAttention(const AttentionParams &params) {
  WgmmaOperands operands =
      wgmmaOperands(params, /*boxRows=*/128, /*withGrad=*/false);
  KernelText result{"attention_forward", "", operands.launch};
  result.launch.sharedBytes = (2 + 2 * 2) * 128 * params.headDim * 2;
  result.text =
      "// Causal attention with segments, forward: TMA, wgmma. sm_90a only.\n" +
      wgmmaConstants(params, params.heads, params.kvHeads) +
      std::string(wgmmaPrelude) +
      wgmmaProducts(/*sharedColumns=*/128, static_cast<int>(params.headDim)) +
      std::string(wgmmaSchedule) +
      substitute(kernel, {{"MATRICES", operands.matrices},
                          {"MAPS", operands.maps},
                          {"Q", operands.q},
                          {"K", operands.k},
                          {"V", operands.v}});
  return result;
}
