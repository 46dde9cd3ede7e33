//===- MmaGradKV.cpp - Attention backward to keys and values on mma.sync --===//

#include "compiler/Target/Cuda/Skeletons/MmaPieces.h"
#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"

#include <numbers>

using namespace fsdpq::cuda;

static constexpr std::string_view kernel = R"(
// A block computes keyRows rows of one key head, 16 a warp. Tiles of queries come from
// the diagonal up to the last that sees the keys, for the heads of the group one after
// the other; the next one is on its way while one is used. For a tile of queries:
//   P^T = exp(scale K Q^T - lse), dP^T = V dO^T, dS^T = P^T (dP^T - delta),
//   dV += P^T dO, dK += dS^T Q

// How many of `tiles` tiles of queries see `key`, if the first `known` do. A tile
// does if its first row does, and then so do all tiles before it (down to the
// key's own). All lanes ask together.
__device__ __forceinline__ int tiles_that_see(const int *segments, int key,
                                              int known, int tiles) {
  while (known < tiles) {
    const int step = (tiles - known + 31) / 32;
    const int tile = known + (int)(threadIdx.x % 32) * step;
    const bool sees = tile < tiles && segments[tile * queryRows] <= key;
    const int hits = __popc(__ballot_sync(0xffffffffu, sees));
    if (hits == 0)
      break;
    tiles = min(tiles, known + hits * step);
    known += (hits - 1) * step + 1;
  }
  return known;
}

struct Queries {
  const bf16 *q, *gradO;
  const float *lse, *delta;
  const int *segments;
  int begin, end, firstHead; // rows that see the keys; the group's first head
};

// Adds to one or both gradients what all queries contribute. The block's rows of k
// and v lie at the beginning of `shared`.
template <bool withK, bool withV>
__device__ __forceinline__ void
add_gradients(unsigned char *shared, int firstKey, const Queries &queries,
              float (&gradK)[1][paddedDim / 8][4],
              float (&gradV)[1][paddedDim / 8][4]) {
  constexpr unsigned queryTile = queryRows * rowBytes;
  constexpr unsigned valueTile = keyRows * rowBytes; // after the keys
  constexpr unsigned queryTiles = 2 * valueTile;
  constexpr unsigned gradTiles = queryTiles + 2 * queryTile;
  // For the queries of a stage: lse in base 2, delta, the first key seen.
  int *words = (int *)(shared + gradTiles + 2 * queryTile);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int key = firstKey + warp * 16; // the warp's first

  // What is fetched next.
  int query = queries.begin, head = queries.firstHead;
  // Starts the copies; gives a word as it is in memory, for store_word after
  // something else has been done.
  auto fetch = [&](int stage) {
    copy_tile<queryRows, qPitch>(
        shared + queryTiles + stage * queryTile,
        queries.q + (long long)query * qPitch + head * headDim);
    copy_tile<queryRows, oPitch>(
        shared + gradTiles + stage * queryTile,
        queries.gradO + (long long)query * oPitch + head * headDim);
    cp_async_commit();
    const int row = query + threadIdx.x % queryRows;
    if (threadIdx.x < queryRows)
      return __float_as_int(queries.lse[(long long)row * heads + head]);
    if (threadIdx.x < 2 * queryRows)
      return __float_as_int(queries.delta[(long long)row * heads + head]);
    return queries.segments[row];
  };
  auto store_word = [&](int stage, int word) {
    if (threadIdx.x < queryRows)
      word = __float_as_int(__int_as_float(word) * @LOG2_E@);
    else if (window != 0 && threadIdx.x >= 2 * queryRows)
      word = max(word, query + (int)threadIdx.x % queryRows - (window - 1));
    if (threadIdx.x < 3 * queryRows)
      words[stage * 3 * queryRows + threadIdx.x] = word;
  };

  store_word(0, fetch(0));
  for (int stage = 0;; stage ^= 1) {
    cp_async_wait<0>();
    __syncthreads();
    const int current = query;
    query += queryRows;
    if (query == queries.end) {
      query = queries.begin;
      ++head;
    }
    const bool last = head == queries.firstHead + group;
    int word = 0;
    if (!last)
      word = fetch(stage ^ 1);
    const float *shift = (const float *)(words + stage * 3 * queryRows);
    const float *rowDelta = shift + queryRows;
    const int *seenFrom = words + stage * 3 * queryRows + 2 * queryRows;
    // Does a query see a key of the warp?
    if (key < current + queryRows && key + 16 > seenFrom[0]) {
      const unsigned keys = warp * 16 * rowBytes + rows_first(lane);
      const unsigned tile = queryTiles + stage * queryTile;
      const unsigned grads = gradTiles + stage * queryTile;
      float s[1][queryRows / 8][4] = {}, gradP[1][queryRows / 8][4] = {};
      add_a_bt<1, queryRows>(s, shared, keys, tile + chunks_first(lane));
      if (withK)
        add_a_bt<1, queryRows>(gradP, shared, valueTile + keys,
                               grads + chunks_first(lane));
      // Does one not see them all?
      if (key + 15 > current || key < seenFrom[queryRows - 1])
#pragma unroll
        for (int n = 0; n < queryRows / 8; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int local = n * 8 + lane % 4 * 2 + e;
            const int from = seenFrom[local] - key - lane / 4;
            const int to = current + local - key - lane / 4;
#pragma unroll
            for (int half = 0; half < 2; ++half)
              if (half * 8 < from || half * 8 > to)
                s[0][n][half * 2 + e] = hidden;
          }
      unsigned p[1][queryRows / 8][2], gradS[1][queryRows / 8][2];
#pragma unroll
      for (int n = 0; n < queryRows / 8; ++n) {
        float weight[4], grad[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int local = n * 8 + lane % 4 * 2 + e % 2;
          weight[e] = exp2_approx(fmaf(s[0][n][e], scaleLog2, -shift[local]));
          if (withK)
            grad[e] = weight[e] * (gradP[0][n][e] - rowDelta[local]);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (withV)
            p[0][n][half] = bf16x2_of(weight[half * 2], weight[half * 2 + 1]);
          if (withK)
            gradS[0][n][half] = bf16x2_of(grad[half * 2], grad[half * 2 + 1]);
        }
      }
      if (withV)
        add_p_b<1, queryRows / 16>(gradV, p, shared, grads + rows_first(lane));
      if (withK)
        add_p_b<1, queryRows / 16>(gradK, gradS, shared, tile + rows_first(lane));
    }
    if (last)
      break;
    store_word(stage ^ 1, word);
  }
}

extern "C" __global__ void __launch_bounds__(threads)
attention_grad_kv(@MATRICES@
                  const bf16 *gradO, const float *lse, const float *delta,
                  const int *segments, @GRADS@
                  long long rows, long long items) {
@POINTERS@@GRAD_POINTERS@  extern __shared__ __align__(1024) unsigned char shared[];
  unsigned char *valueTile = shared + keyRows * rowBytes;

  // The first tiles come first: they tend to be seen by the most queries.
  const Place place = place_of_block<1, 2 * group * headDim>((int)rows / keyRows,
                                                             (int)rows);
  const int firstKey = place.tile * keyRows, lastKey = firstKey + keyRows - 1;
  const int firstHead = place.head * group;
  const long long at = (long long)firstKey * kvPitch + place.head * headDim;
  copy_tile<keyRows, kvPitch>(shared, k + at);
  copy_tile<keyRows, kvPitch>(valueTile, v + at);
  cp_async_commit();

  int tiles = (int)rows / queryRows;
  if (window != 0)
    tiles = min(tiles, (lastKey + (window - 1)) / queryRows + 1);
  tiles = tiles_that_see(segments, lastKey, lastKey / queryRows + 1, tiles);
  const int begin = firstKey / queryRows * queryRows, end = tiles * queryRows;
  const Queries queries = {q, gradO, lse, delta, segments, begin, end, firstHead};

  const int warp = threadIdx.x / 32;
  const long long mine = at + (long long)warp * 16 * kvPitch;
  // 16 rows of v that no other warp reads; results go through them.
  unsigned char *buffer = valueTile + warp * 16 * rowBytes;
@PASSES@}
)";

static constexpr std::string_view onePass = R"(
  float sumK[1][paddedDim / 8][4] = {}, sumV[1][paddedDim / 8][4] = {};
  add_gradients<true, true>(shared, firstKey, queries, sumK, sumV);
  store_rows<kvPitch>(buffer, gradK + mine, sumK[0], @SCALE@, @SCALE@);
  store_rows<kvPitch>(buffer, gradV + mine, sumV[0], 1.f, 1.f);
)";

static constexpr std::string_view twoPasses = R"(
  // Only one of the sums fits into the registers.
  {
    float sum[1][paddedDim / 8][4] = {};
    add_gradients<true, false>(shared, firstKey, queries, sum, sum);
    store_rows<kvPitch>(buffer, gradK + mine, sum[0], @SCALE@, @SCALE@);
  }
  __syncthreads(); // no warp reads the last tiles any more
  {
    float sum[1][paddedDim / 8][4] = {};
    add_gradients<false, true>(shared, firstKey, queries, sum, sum);
    store_rows<kvPitch>(buffer, gradV + mine, sum[0], 1.f, 1.f);
  }
)";

KernelText
fsdpq::cuda::emitMmaAttentionGradKV(const AttentionParams &params,
                                    const Architecture &architecture) {
  MmaTiles tiles = *mmaGradKVTiles(params, architecture);
  MmaOperands operands = mmaOperands(params);
  std::string grads = "bf16 *gradK, bf16 *gradV,", gradPointers;
  if (params.packed) {
    grads = "bf16 *gradQkv,";
    gradPointers = "  bf16 *gradK = gradQkv + " +
                   std::to_string(params.kColumn()) + ", *gradV = gradQkv + " +
                   std::to_string(params.vColumn()) + ";\n";
  }
  std::string passes =
      substitute(mmaPaddedDim(params) <= 128 ? onePass : twoPasses,
                 {{"SCALE", floatLiteral(params.scale)}});
  return {
      "attention_grad_kv",
      "// Causal attention with segments, gradients of k and v: cp.async, "
      "mma.sync.\n" +
          mmaConstants(params, tiles.streaming, tiles.staying, tiles.warps) +
          mmaInstructions(params) + mmaTileText(params) +
          substitute(kernel, {{"MATRICES", operands.parameters},
                              {"POINTERS", operands.pointers},
                              {"GRADS", grads},
                              {"GRAD_POINTERS", gradPointers},
                              {"LOG2_E", floatLiteral(std::numbers::log2e)},
                              {"PASSES", passes}}),
      mmaLaunch(tiles)};
}
