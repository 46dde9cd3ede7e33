//===- WgmmaGradQ.cpp - Gradient of the queries on wgmma ------------------===//

#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"
#include "compiler/Target/Cuda/Skeletons/WgmmaPieces.h"

using namespace fsdpq::cuda;

namespace {

constexpr std::string_view kernel = R"(
// ---- the kernel ----
// One tile = 128 queries of one head; for each block of 64 keys, from the diagonal down
// to the first that the first row sees: S = Q K^T, dP = dO V^T, P = exp(scale S - lse),
// dS = P (dP - delta), dQ += dS K. dS stays in registers (left operand).
// Persistent blocks. Warpgroup 0: warp 0 issues the copies, warp 1 loads lse and delta.
// Warpgroups 1 and 2: 64 queries each.
// Shared memory: Q, dO; STAGES blocks of K and V.

extern "C" __global__ void __launch_bounds__(384, 1)
attention_grad_q(@MATRICES@, const u16* d_out, const float* lse, const float* delta, const int* segments, u16* @RESULT@, long long items@MAPS@) {
  extern __shared__ __align__(1024) u8 dynamic[];
  __shared__ __align__(16) int tile_segments[128];
  __shared__ float2 tile_rows[128]; // lse times log2(e), delta
  __shared__ __align__(8) int2 now; // tile (-1: no more), head: told to warp 1, then with Q and dO to the consumers
  __shared__ __align__(8) u64 barriers[3 + 2 * STAGES];
  __shared__ __align__(16) u32 keys[MAX_TILES];
  __shared__ u16 order[MAX_TILES];
  const u32 sQ = address(dynamic), sO = sQ + TILE, sK = sO + TILE, sV = sK + STAGES * BLOCK;
  const u32 full_q = address(barriers), empty_q = full_q + 8, told = empty_q + 8, full = told + 8, empty = full + 8 * STAGES;
  const int group = uniform(threadIdx.x >> 7), warp = (threadIdx.x >> 5) & 3, lane = threadIdx.x & 31;
  const int tiles = (int)(items / (4 * HEADS));
  if (threadIdx.x == 0) {
    mb_init(full_q, 1 + 32);
    mb_init(empty_q, 8);
    mb_init(told, 1);
    for (int i = 0; i < STAGES; i++) {
      mb_init(full + 8 * i, 1);
      mb_init(empty + 8 * i, 8);
    }
    mb_publish();
  }
  if (tiles <= MAX_TILES) sort_query_tiles(order, keys, segments, tiles);
  __syncthreads();
  if (group == 0) {
    registers_down<24>();
    if (threadIdx.x == 0) {
      Schedule schedule = {order, (u32)tiles, 0};
      u32 it = 0; // blocks so far: ring position it % STAGES, phase (it / STAGES) & 1
      for (int turn = 0;; turn++) {
        int head;
        const int tile = schedule.next(head);
        mb_wait(empty_q, (turn & 1) ^ 1);
        now = make_int2(tile, head);
        mb_arrive(told);
        if (tile < 0) {
          mb_arrive(full_q);
          break;
        }
        mb_expect(full_q, 2 * TILE + 512);
        for (int c = 0; c < PIECES; c++)
          for (int r = 0; r < 128; r += 64) {
            tma(sQ + c * 128 * 128 + r * 128, &@Q@, Q_COLUMN + head * E + c * 64, tile * 128 + r, full_q);
            tma(sO + c * 128 * 128 + r * 128, &@DO@, head * E + c * 64, tile * 128 + r, full_q);
          }
        bulk(address(tile_segments), segments + tile * 128, 512, full_q);
        const int column = head / GROUP * E, first = segments[tile * 128] / 64;
#pragma unroll 1
        for (int j = tile * 2 + 1; j >= first; j--, it++) {
          const u32 stage = it % STAGES, ready = full + 8 * stage;
          mb_wait(empty + 8 * stage, (it / STAGES & 1) ^ 1);
          mb_expect(ready, 2 * BLOCK);
          for (int c = 0; c < PIECES; c++) {
            tma(sK + stage * BLOCK + c * 64 * 128, &@K@, K_COLUMN + column + c * 64, j * 64, ready);
            tma(sV + stage * BLOCK + c * 64 * 128, &@V@, V_COLUMN + column + c * 64, j * 64, ready);
          }
        }
      }
    } else if (warp == 1) {
      for (int turn = 0;; turn++) {
        mb_wait(told, turn & 1);
        const int tile = now.x, head = now.y;
        if (tile >= 0) {
          float l[4], d[4];
#pragma unroll
          for (int i = 0; i < 4; i++) {
            const u32 at = (tile * 128 + i * 32 + lane) * HEADS + head;
            l[i] = lse[at];
            d[i] = delta[at];
          }
#pragma unroll
          for (int i = 0; i < 4; i++) tile_rows[i * 32 + lane] = make_float2(l[i] * LOG2E, d[i]);
        }
        mb_arrive(full_q);
        if (tile < 0) break;
      }
    }
  } else {
    registers_up<240>();
    const int w = group - 1, row = warp * 16 + lane / 4; // of the 64
    int stage = 0, phase = 0;
    for (int turn = 0;; turn++) {
      mb_wait(full_q, turn & 1);
      const int tile = uniform(now.x), head = uniform(now.y);
      if (tile < 0) break;
      const int first = uniform(tile_segments[0]) / 64;
      const int border = uniform(tile_segments[w * 64 + 63]); // some row does not see the keys before
      const int see[2] = {tile_segments[w * 64 + row], tile_segments[w * 64 + row + 8]};
      const float2 row0 = tile_rows[w * 64 + row], row1 = tile_rows[w * 64 + row + 8];
      const float l[2] = {row0.x, row1.x}, d[2] = {row0.y, row1.y};
      float dq[E / 2] = {}, s[32], dp[32];
      u32 ds[4][4];
      if (w == 0) { // the last 64 keys come after all rows of this warpgroup
        mb_wait(full + 8 * stage, phase);
        if (lane == 0) mb_arrive(empty + 8 * stage);
        advance<STAGES>(stage, phase);
      }
      const int diagonal = tile * 2 + w;
      for (int j = diagonal; j >= first; j--) {
        const u32 k = sK + stage * BLOCK, v = sV + stage * BLOCK;
        mb_wait(full + 8 * stage, phase);
        wg_fence();
        inner(s, sQ + w * 64 * 128, k);
        wg_commit();
        inner(dp, sO + w * 64 * 128, v);
        wg_commit();
        wg_wait<1>();
        keep(s);
#pragma unroll
        for (int i = 0; i < 32; i++) s[i] = ex2(fmaf(s[i], SCALE_LOG2, -l[(i >> 1) & 1]));
        if (j == diagonal || j * 64 < border) {
          const int last = j == diagonal ? row : 64;
#pragma unroll
          for (int i = 0; i < 32; i++) {
            const int key = (i >> 2) * 8 + (lane & 3) * 2 + (i & 1), r = (i >> 1) & 1;
            if (key > last + r * 8 || key < see[r] - j * 64) s[i] = 0.f;
          }
        }
        wg_wait<0>();
        keep(dp);
#pragma unroll
        for (int i = 0; i < 16; i++) ds[i >> 2][i & 3] = bf16x2(s[2 * i] * (dp[2 * i] - d[i & 1]), s[2 * i + 1] * (dp[2 * i + 1] - d[i & 1]));
        wg_fence();
        outer(dq, ds, k);
        wg_commit();
        wg_wait<0>();
        keep(dq);
        if (lane == 0) mb_arrive(empty + 8 * stage);
        advance<STAGES>(stage, phase);
      }
      if (lane == 0) mb_arrive(empty_q);
      store<Q_PITCH>(@RESULT@ + (u64)(tile * 128 + w * 64) * Q_PITCH + Q_COLUMN + head * E, dq, SCALE, SCALE, warp, lane);
    }
  }
}
)";

} // namespace

KernelText fsdpq::cuda::emitWgmmaAttentionGradQ(const AttentionParams &params) {
  WgmmaOperands operands =
      wgmmaOperands(params, /*boxRows=*/64, /*withGrad=*/true);
  KernelText result{"attention_grad_q", "", operands.launch};
  result.launch.sharedBytes = (2 * 128 + 4 * 2 * 64) * params.headDim * 2;
  result.text =
      "// Causal attention with segments, gradient of q: TMA, wgmma. sm_90a "
      "only.\n" +
      wgmmaConstants(params, params.heads, params.kvHeads) +
      std::string(wgmmaPrelude) +
      wgmmaProducts(/*sharedColumns=*/64, static_cast<int>(params.headDim)) +
      std::string(wgmmaSchedule) + std::string(wgmmaGradBlocks) +
      substitute(kernel, {{"MATRICES", operands.matrices},
                          {"MAPS", operands.maps},
                          {"RESULT", params.packed ? "dqkv" : "dq_out"},
                          {"Q", operands.q},
                          {"K", operands.k},
                          {"V", operands.v},
                          {"DO", operands.dO}});
  return result;
}
