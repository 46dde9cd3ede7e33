//===- MmaGradQ.cpp - Attention backward to the queries on mma.sync -------===//

#include "compiler/Target/Cuda/Skeletons/MmaPieces.h"
#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"

#include <numbers>

using namespace fsdpq::cuda;

static constexpr std::string_view kernel = R"(
// A block computes queryRows rows of one head, 16 a warp. Tiles of keys come from the
// diagonal down to the first that the first row sees; the next one is on its way
// while one is used. For a tile of keys:
//   P = exp(scale Q K^T - lse), dP = dO V^T, dS = P (dP - delta), dQ += dS K
extern "C" __global__ void __launch_bounds__(threads)
attention_grad_q(@MATRICES@
                 const bf16 *gradO, const float *lse, const float *delta,
                 const int *segments, bf16 *gradQ, long long items) {
@POINTERS@  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr unsigned keyTile = keyRows * rowBytes;
  constexpr unsigned gradTile = queryRows * rowBytes; // after the queries
  constexpr unsigned keyTiles = 2 * gradTile;
  constexpr unsigned valueTiles = keyTiles + 2 * keyTile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // The last tiles come first: they tend to see the most keys.
  const int rows = (int)(items / heads) * 32, tiles = rows / queryRows;
  const Place place = place_of_block<group, 2 * headDim>(tiles, rows);
  const int head = place.head, firstQuery = (tiles - 1 - place.tile) * queryRows;
  int key = firstQuery + queryRows - keyRows; // the first of the tile at hand
  q += (long long)firstQuery * qPitch + head * headDim;
  k += (long long)key * kvPitch + head / group * headDim;
  v += (long long)key * kvPitch + head / group * headDim;
  gradO += (long long)firstQuery * oPitch + head * headDim;
  copy_tile<queryRows, qPitch>(shared, q);
  copy_tile<queryRows, oPitch>(shared + gradTile, gradO);
  copy_tile<keyRows, kvPitch>(shared + keyTiles, k);
  copy_tile<keyRows, kvPitch>(shared + valueTiles, v);
  cp_async_commit();

  // What the first row of the block sees, the first and the last of the warp, and
  // the two of the thread.
  const int row = firstQuery + warp * 16;
  const int blockSees = first_seen(segments, firstQuery);
  const int firstSees = first_seen(segments, row);
  const int lastSees = first_seen(segments, row + 15);
  int seenFrom[2];
  float shift[2], rowDelta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = row + half * 8 + lane / 4;
    seenFrom[half] = first_seen(segments, query);
    shift[half] = lse[(long long)query * heads + head] * @LOG2_E@;
    rowDelta[half] = delta[(long long)query * heads + head];
  }

  float sum[1][paddedDim / 8][4] = {};
  for (unsigned stage = 0;; stage ^= 1) {
    cp_async_wait<0>();
    __syncthreads();
    const bool last = key <= blockSees;
    if (!last) {
      k -= keyRows * kvPitch;
      v -= keyRows * kvPitch;
      copy_tile<keyRows, kvPitch>(shared + keyTiles + (stage ^ 1) * keyTile, k);
      copy_tile<keyRows, kvPitch>(shared + valueTiles + (stage ^ 1) * keyTile, v);
      cp_async_commit();
    }
    // Does a row of the warp see a key?
    if (key < row + 16 && key + keyRows > firstSees) {
      const unsigned queries = warp * 16 * rowBytes + rows_first(lane);
      const unsigned keys = keyTiles + stage * keyTile;
      const unsigned values = valueTiles + stage * keyTile;
      float s[1][keyRows / 8][4] = {}, gradP[1][keyRows / 8][4] = {};
      add_a_bt<1, keyRows>(s, shared, queries, keys + chunks_first(lane));
      add_a_bt<1, keyRows>(gradP, shared, gradTile + queries,
                           values + chunks_first(lane));
      // Does one not see them all?
      if (key + keyRows - 1 > row || key < lastSees)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int column = key + lane % 4 * 2;
          const int from = seenFrom[half] - column;
          const int to = row + half * 8 + lane / 4 - column;
#pragma unroll
          for (int n = 0; n < keyRows / 8; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e)
              if (n * 8 + e < from || n * 8 + e > to)
                s[0][n][half * 2 + e] = hidden;
        }
      unsigned gradS[1][keyRows / 8][2];
#pragma unroll
      for (int n = 0; n < keyRows / 8; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float grad[2];
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const float p =
                exp2_approx(fmaf(s[0][n][half * 2 + e], scaleLog2, -shift[half]));
            grad[e] = p * (gradP[0][n][half * 2 + e] - rowDelta[half]);
          }
          gradS[0][n][half] = bf16x2_of(grad[0], grad[1]);
        }
      add_p_b<1, keyRows / 16>(sum, gradS, shared, keys + rows_first(lane));
    }
    if (last)
      break;
    key -= keyRows;
  }

  store_rows<qPitch>(shared + warp * 16 * rowBytes,
                     gradQ + (long long)row * qPitch + head * headDim, sum[0],
                     @SCALE@, @SCALE@);
}
)";

KernelText
fsdpq::cuda::emitMmaAttentionGradQ(const AttentionParams &params,
                                   const Architecture &architecture) {
  MmaTiles tiles = *mmaGradQTiles(params, architecture);
  MmaOperands operands = mmaOperands(params);
  return {
      "attention_grad_q",
      "// Causal attention with segments, gradient of q: cp.async, "
      "mma.sync.\n" +
          mmaConstants(params, tiles.staying, tiles.streaming, tiles.warps) +
          mmaInstructions(params) + mmaTileText(params) +
          substitute(kernel, {{"MATRICES", operands.parameters},
                              {"POINTERS", operands.pointers},
                              {"LOG2_E", floatLiteral(std::numbers::log2e)},
                              {"SCALE", floatLiteral(params.scale)}}),
      mmaLaunch(tiles)};
}
