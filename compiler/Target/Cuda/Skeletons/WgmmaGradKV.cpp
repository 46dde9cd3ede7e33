//===- WgmmaGradKV.cpp - Gradients of keys and values on wgmma ------------===//

#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"
#include "compiler/Target/Cuda/Skeletons/WgmmaPieces.h"

using namespace fsdpq::cuda;

namespace {

constexpr std::string_view kernel = R"(
// ---- the kernel ----
// One tile = 128 keys of one key head; for each query head of its group in order, each
// block of 64 queries from the diagonal to the last that sees the tile: S^T = K Q^T,
// dP^T = V dO^T, P^T = exp(scale S^T - lse), dV += P^T dO, dS^T = P^T (dP^T - delta),
// dK += dS^T Q. P^T and dS^T stay in registers (left operands).
// Persistent blocks. Warpgroup 0: warp 0 issues the copies, warp 1 loads lse and delta.
// Warpgroups 1 and 2: 64 keys each.
// Shared memory: K, V; STAGES blocks of Q and dO.
// The end of the blocks of queries that see the tile: those from tile * 2 on whose first
// row belongs to a segment that begins before the tile's end; segments never decrease.
// first_tiles: of each block, the tile where the segment of its first row begins.
DEV int end_of(int tile, int tiles, const u16* first_tiles) {
  int low = 2 * tile + 1, high = 2 * tiles - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (first_tiles[middle] <= tile) low = middle;
    else high = middle - 1;
  }
  return low + 1;
}

extern "C" __global__ void __launch_bounds__(384, 1)
attention_grad_kv(@MATRICES@, const u16* d_out, const float* lse, const float* delta, const int* segments, @RESULTS@, long long rows,
                  long long items@MAPS@) {
  extern __shared__ __align__(1024) u8 dynamic[];
  __shared__ __align__(16) int block_segments[STAGES][64];
  __shared__ __align__(16) float block_lse[STAGES][64], block_delta[STAGES][64]; // lse times log2(e)
  __shared__ __align__(16) int4 now; // tile (-1: no more), key head, end of the blocks: told to warp 1, then with K and V to the consumers
  __shared__ __align__(8) u64 barriers[3 + 2 * STAGES];
  __shared__ __align__(16) u32 keys[MAX_TILES];
  __shared__ u16 first_tiles[2 * MAX_TILES], ends[MAX_TILES], order[MAX_TILES];
  const u32 sK = address(dynamic), sV = sK + TILE, sQ = sV + TILE, sO = sQ + STAGES * BLOCK;
  const u32 full_kv = address(barriers), empty_kv = full_kv + 8, told = empty_kv + 8, full = told + 8, empty = full + 8 * STAGES;
  const int group = uniform(threadIdx.x >> 7), warp = (threadIdx.x >> 5) & 3, lane = threadIdx.x & 31;
  const int tiles = (int)(rows / 128);
  if (threadIdx.x == 0) {
    mb_init(full_kv, 1);
    mb_init(empty_kv, 8);
    mb_init(told, 1);
    for (int i = 0; i < STAGES; i++) {
      mb_init(full + 8 * i, 1 + 32);
      mb_init(empty + 8 * i, 8);
    }
    mb_publish();
  }
  if (tiles <= MAX_TILES) {
    for (int i = threadIdx.x; i < 2 * tiles; i += 384) first_tiles[i] = segments[i * 64] / 128;
    __syncthreads();
    for (int i = threadIdx.x; i < (tiles + 3) / 4 * 4; i += 384) {
      const int end = i < tiles ? end_of(i, tiles, first_tiles) : 0;
      if (i < tiles) ends[i] = end;
      keys[i] = i < tiles ? sort_key(i, end - 2 * i) : 0;
    }
    __syncthreads();
    sort_tiles(order, keys, tiles);
  }
  __syncthreads();
  if (group == 0) {
    registers_down<24>();
    u32 it = 0; // blocks so far: ring position it % STAGES, phase (it / STAGES) & 1
    if (threadIdx.x == 0) {
      Schedule schedule = {order, (u32)tiles, 0};
      for (int turn = 0;; turn++) {
        int head, end = 0;
        const int tile = schedule.next(head);
        if (tile >= 0 && tiles <= MAX_TILES) {
          end = ends[tile];
        } else if (tile >= 0) {
          for (end = tile * 2 + 2; end < tiles * 2 && segments[end * 64] < (tile + 1) * 128;) end++;
        }
        mb_wait(empty_kv, (turn & 1) ^ 1);
        now = make_int4(tile, head, end, 0);
        mb_arrive(told);
        if (tile < 0) {
          mb_arrive(full_kv);
          break;
        }
        mb_expect(full_kv, 2 * TILE);
        for (int c = 0; c < PIECES; c++)
          for (int r = 0; r < 128; r += 64) {
            tma(sK + c * 128 * 128 + r * 128, &@K@, K_COLUMN + head * E + c * 64, tile * 128 + r, full_kv);
            tma(sV + c * 128 * 128 + r * 128, &@V@, V_COLUMN + head * E + c * 64, tile * 128 + r, full_kv);
          }
#pragma unroll 1
        for (int h = head * GROUP; h < (head + 1) * GROUP; h++)
#pragma unroll 1
          for (int block = tile * 2; block < end; block++, it++) {
            const u32 stage = it % STAGES, ready = full + 8 * stage;
            mb_wait(empty + 8 * stage, (it / STAGES & 1) ^ 1);
            mb_expect(ready, 2 * BLOCK + 256);
            for (int c = 0; c < PIECES; c++) {
              tma(sQ + stage * BLOCK + c * 64 * 128, &@Q@, Q_COLUMN + h * E + c * 64, block * 64, ready);
              tma(sO + stage * BLOCK + c * 64 * 128, &@DO@, h * E + c * 64, block * 64, ready);
            }
            bulk(address(block_segments[stage]), segments + block * 64, 256, ready);
          }
      }
    } else if (warp == 1) {
      for (int turn = 0;; turn++) {
        mb_wait(told, turn & 1);
        const int tile = now.x, head = now.y, end = now.z;
        if (tile < 0) break;
#pragma unroll 1
        for (int h = head * GROUP; h < (head + 1) * GROUP; h++)
#pragma unroll 1
          for (int block = tile * 2; block < end; block++, it++) {
            const u32 stage = it % STAGES, at = (block * 64 + lane) * HEADS + h;
            const float l0 = lse[at], l1 = lse[at + 32 * HEADS], d0 = delta[at], d1 = delta[at + 32 * HEADS];
            mb_wait(empty + 8 * stage, (it / STAGES & 1) ^ 1);
            block_lse[stage][lane] = l0 * LOG2E;
            block_lse[stage][lane + 32] = l1 * LOG2E;
            block_delta[stage][lane] = d0;
            block_delta[stage][lane + 32] = d1;
            mb_arrive(full + 8 * stage);
          }
      }
    }
  } else {
    registers_up<240>();
    const int w = group - 1, row = warp * 16 + lane / 4; // of the 64 keys
    int stage = 0, phase = 0;
    for (int turn = 0;; turn++) {
      mb_wait(full_kv, turn & 1);
      const int tile = uniform(now.x), head = uniform(now.y), end = uniform(now.z);
      if (tile < 0) break;
      const int diagonal = tile * 2 + w, count = (end - diagonal) * GROUP, first_key = tile * 128 + w * 64;
      int block = diagonal, before = 0;
      float dk[E / 2], dv[E / 2], s[32], dp[32];
      u32 p[4][4], ds[4][4];
      // the next block; the first one of a head comes before all keys of the second
      // warpgroup, which passes it on
      auto acquire = [&] {
        if (w == 1 && block == diagonal) {
          mb_wait(full + 8 * stage, phase);
          if (lane == 0) mb_arrive(empty + 8 * stage);
          advance<STAGES>(stage, phase);
        }
        mb_wait(full + 8 * stage, phase);
      };
      zero(dk);
      zero(dv);
      acquire();
      wg_fence();
      inner(s, sK + w * 64 * 128, sQ + stage * BLOCK);
      wg_commit();
      for (int t = 0; t < count; t++) {
        const u32 q = sQ + stage * BLOCK, o = sO + stage * BLOCK;
        const u32 l = address(block_lse[stage]) + (lane & 3) * 8, d = address(block_delta[stage]) + (lane & 3) * 8;
        const int border = uniform(block_segments[stage][63]); // some query does not see the keys before
        wg_wait<0>();
        keep(s);
        if (t && lane == 0) mb_arrive(empty + 8 * before); // S^T of this block, dV and dK of the block before are done
        wg_fence();
        inner(dp, sV + w * 64 * 128, o);
        wg_commit(); // dP^T = V dO^T runs during exp
#pragma unroll
        for (int n = 0; n < 8; n++) {
          const float2 x = load2(l + n * 32);
#pragma unroll
          for (int e = 0; e < 4; e++) s[n * 4 + e] = ex2(fmaf(s[n * 4 + e], SCALE_LOG2, -(e & 1 ? x.y : x.x)));
        }
        if (block == diagonal || first_key < border) {
          const int later = block == diagonal ? 0 : 64;
#pragma unroll
          for (int i = 0; i < 32; i++) {
            const int query = (i >> 2) * 8 + (lane & 3) * 2 + (i & 1), key = row + ((i >> 1) & 1) * 8;
            if (key > query + later || first_key + key < block_segments[stage][query]) s[i] = 0.f;
          }
        }
#pragma unroll
        for (int i = 0; i < 16; i++) p[i >> 2][i & 3] = bf16x2(s[2 * i], s[2 * i + 1]);
        wg_wait<0>();
        keep(dp);
        if (t + 1 == count && lane == 0) mb_arrive(empty_kv); // the last read of K and V
        wg_fence();
        outer(dv, p, o);
        wg_commit(); // dV += P^T dO runs while dS is computed
#pragma unroll
        for (int n = 0; n < 8; n++) {
          const float2 x = load2(d + n * 32);
#pragma unroll
          for (int e = 0; e < 4; e++) dp[n * 4 + e] = s[n * 4 + e] * (dp[n * 4 + e] - (e & 1 ? x.y : x.x));
        }
#pragma unroll
        for (int i = 0; i < 16; i++) ds[i >> 2][i & 3] = bf16x2(dp[2 * i], dp[2 * i + 1]);
        wg_fence();
        outer(dk, ds, q);
        wg_commit(); // dK += dS^T Q
        before = stage;
        advance<STAGES>(stage, phase);
        if (++block == end) block = diagonal;
        if (t + 1 < count) acquire();
        wg_fence();
        inner(s, sK + w * 64 * 128, sQ + stage * BLOCK);
        wg_commit(); // after the last block: a product that nobody uses
      }
      wg_wait<0>();
      keep(s);
      keep(dk);
      keep(dv);
      if (lane == 0) mb_arrive(empty + 8 * before);
      store<KV_PITCH>(@DV@ + (u64)first_key * KV_PITCH + V_COLUMN + head * E, dv, 1.f, 1.f, warp, lane);
      store<KV_PITCH>(@DK@ + (u64)first_key * KV_PITCH + K_COLUMN + head * E, dk, SCALE, SCALE, warp, lane);
    }
  }
}
)";

} // namespace

KernelText
fsdpq::cuda::emitWgmmaAttentionGradKV(const AttentionParams &params) {
  WgmmaOperands operands =
      wgmmaOperands(params, /*boxRows=*/64, /*withGrad=*/true);
  KernelText result{"attention_grad_kv", "", operands.launch};
  result.launch.sharedBytes = (2 * 128 + 4 * 2 * 64) * params.headDim * 2;
  result.text =
      "// Causal attention with segments, gradients of k and v: TMA, wgmma. "
      "sm_90a "
      "only.\n" +
      wgmmaConstants(params, params.kvHeads, params.heads) +
      std::string(wgmmaPrelude) +
      wgmmaProducts(/*sharedColumns=*/64, static_cast<int>(params.headDim)) +
      std::string(wgmmaSchedule) + std::string(wgmmaGradBlocks) +
      substitute(kernel,
                 {{"MATRICES", operands.matrices},
                  {"MAPS", operands.maps},
                  {"RESULTS",
                   params.packed ? "u16* dqkv" : "u16* dk_out, u16* dv_out"},
                  {"DK", params.packed ? "dqkv" : "dk_out"},
                  {"DV", params.packed ? "dqkv" : "dv_out"},
                  {"Q", operands.q},
                  {"K", operands.k},
                  {"V", operands.v},
                  {"DO", operands.dO}});
  return result;
}
