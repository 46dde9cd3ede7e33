//===- MmaForward.cpp - Attention forward on mma.sync ---------------------===//

#include "compiler/Target/Cuda/Skeletons/MmaPieces.h"
#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"

using namespace fsdpq::cuda;

static constexpr std::string_view kernel = R"(
// A block computes queryRows rows of one head; its warps share them. Tiles of keys
// come from the diagonal down to the first that the first row sees; the next one is
// on its way while one is used. Weights are exponentials in base 2 of scores less the
// largest score so far.
constexpr int warpRows = queryRows / warps, parts = warpRows / 16;

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

extern "C" __global__ void __launch_bounds__(threads)
attention_forward(@MATRICES@
                  const int *segments, bf16 *o, float *lse, long long items) {
@POINTERS@  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr unsigned keyTile = keyRows * rowBytes;
  constexpr unsigned keyTiles = queryRows * rowBytes; // after the queries
  constexpr unsigned valueTiles = keyTiles + 2 * keyTile;
  // The first key that each query sees. Keys and queries count from the block's
  // first query, so that keys before it are negative.
  int *seenFrom = (int *)(shared + valueTiles + 2 * keyTile);
  int *keptPlace = seenFrom + queryRows;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  int key = queryRows - keyRows; // the first of the tile at hand
  // The last tiles come first: they tend to see the most keys.
  const int rows = (int)(items / heads) * 32, tiles = rows / queryRows;
  const Place place = place_of_block<group, 2 * headDim>(tiles, rows);
  const int firstQuery = (tiles - 1 - place.tile) * queryRows;
  q += (long long)firstQuery * qPitch + place.head * headDim;
  k += (long long)(firstQuery + key) * kvPitch + place.head / group * headDim;
  v += (long long)(firstQuery + key) * kvPitch + place.head / group * headDim;
  copy_tile<queryRows, qPitch>(shared, q);
  copy_tile<keyRows, kvPitch>(shared + keyTiles, k);
  copy_tile<keyRows, kvPitch>(shared + valueTiles, v);
  cp_async_commit();
  for (int i = threadIdx.x; i < queryRows; i += threads)
    seenFrom[i] = first_seen(segments, firstQuery + i) - firstQuery;
  if (threadIdx.x == 0) { // the loop has no registers for them
    keptPlace[0] = firstQuery;
    keptPlace[1] = place.head;
  }

  const int row = warp * warpRows; // the warp's first
  float sum[parts][paddedDim / 8][4] = {}, weight[parts][2] = {}, largest[parts][2];
#pragma unroll
  for (int i = 0; i < parts; ++i)
    largest[i][0] = largest[i][1] = hidden;
  for (unsigned stage = 0;; stage ^= 1) {
    cp_async_wait<0>();
    __syncthreads();
    const bool last = key <= seenFrom[0];
    if (!last) {
      k -= keyRows * kvPitch;
      v -= keyRows * kvPitch;
      copy_tile<keyRows, kvPitch>(shared + keyTiles + (stage ^ 1) * keyTile, k);
      copy_tile<keyRows, kvPitch>(shared + valueTiles + (stage ^ 1) * keyTile, v);
      cp_async_commit();
    }
    // Does a row of the warp see a key?
    if (key < row + warpRows && key + keyRows > seenFrom[row]) {
      float s[parts][keyRows / 8][4] = {};
      add_a_bt<parts, keyRows>(s, shared, row * rowBytes + rows_first(lane),
                               keyTiles + stage * keyTile + chunks_first(lane));
      // Does one not see them all?
      if (key + keyRows - 1 > row || key < seenFrom[row + warpRows - 1])
#pragma unroll
        for (int i = 0; i < parts; ++i)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int query = row + i * 16 + half * 8 + lane / 4;
            const int column = key + lane % 4 * 2;
            const int from = seenFrom[query] - column;
            const int to = query - column;
#pragma unroll
            for (int n = 0; n < keyRows / 8; ++n)
#pragma unroll
              for (int e = 0; e < 2; ++e)
                if (n * 8 + e < from || n * 8 + e > to)
                  s[i][n][half * 2 + e] = hidden;
          }
      float origin[parts][2];
#pragma unroll
      for (int i = 0; i < parts; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float most = largest[i][half];
#pragma unroll
          for (int n = 0; n < keyRows / 8; ++n)
            most = fmaxf(most, fmaxf(s[i][n][half * 2], s[i][n][half * 2 + 1]));
          most = quad_max(most);
          const float shrink = exp2_approx((largest[i][half] - most) * scaleLog2);
          // A row that has seen no key yet has no weights.
          origin[i][half] = most == hidden ? 0.f : most * scaleLog2;
          largest[i][half] = most;
          weight[i][half] *= shrink;
#pragma unroll
          for (int n = 0; n < paddedDim / 8; ++n) {
            sum[i][n][half * 2] *= shrink;
            sum[i][n][half * 2 + 1] *= shrink;
          }
        }
      // 16 keys at a time, so that exponentials and products overlap.
#pragma unroll
      for (int step = 0; step < keyRows / 16; ++step) {
        unsigned p[parts][2][2];
#pragma unroll
        for (int i = 0; i < parts; ++i)
#pragma unroll
          for (int n = 0; n < 2; ++n)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const float *score = &s[i][2 * step + n][half * 2];
              const float x =
                  exp2_approx(fmaf(score[0], scaleLog2, -origin[i][half]));
              const float y =
                  exp2_approx(fmaf(score[1], scaleLog2, -origin[i][half]));
              weight[i][half] += x + y;
              p[i][n][half] = bf16x2_of(x, y);
            }
        add_p_b<parts, 1>(sum, p, shared,
                          valueTiles + stage * keyTile + step * 16 * rowBytes +
                              rows_first(lane));
      }
    }
    if (last)
      break;
    key -= keyRows;
  }

  const int firstRow = keptPlace[0] + row, head = keptPlace[1];
#pragma unroll
  for (int i = 0; i < parts; ++i) {
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = quad_sum(weight[i][half]);
      inverse[half] = 1.f / total;
      if (lane % 4 == 0)
        lse[(long long)(firstRow + i * 16 + half * 8 + lane / 4) * heads + head] =
            largest[i][half] * @SCALE@ + logf(total);
    }
    store_rows<oPitch>(shared + (row + i * 16) * rowBytes,
                       o + (long long)(firstRow + i * 16) * oPitch + head * headDim,
                       sum[i], inverse[0], inverse[1]);
  }
}
)";

KernelText fsdpq::cuda::emitMmaAttention(const AttentionParams &params,
                                         const Architecture &architecture) {
  MmaTiles tiles = *mmaForwardTiles(params, architecture);
  MmaOperands operands = mmaOperands(params);
  return {
      "attention_forward",
      "// Causal attention with segments, forward: cp.async, mma.sync.\n" +
          mmaConstants(params, tiles.staying, tiles.streaming, tiles.warps) +
          mmaInstructions(params) + mmaTileText(params) +
          substitute(kernel, {{"MATRICES", operands.parameters},
                              {"POINTERS", operands.pointers},
                              {"SCALE", floatLiteral(params.scale)}}),
      mmaLaunch(tiles)};
}
