//===- MmaPieces.cpp - What the mma attention texts share -----------------===//

#include "compiler/Target/Cuda/Skeletons/MmaPieces.h"
#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>

using namespace fsdpq::cuda;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

namespace {

/// Rows of tiles that shared memory holds for each row that stays and for each
/// row that streams, further bytes for these, and others.
struct Footprint {
  int stayingRows, streamingRows;
  int stayingBytes, streamingBytes, bytes;
};

struct Candidate {
  int staying, streaming, warps;
};

} // namespace

int64_t fsdpq::cuda::mmaPaddedDim(const AttentionParams &params) {
  return (params.headDim + 15) / 16 * 16;
}

static std::optional<MmaTiles>
firstThatFits(const AttentionParams &params, const Architecture &architecture,
              const Footprint &footprint,
              std::initializer_list<Candidate> candidates) {
  int64_t rowBytes = mmaPaddedDim(params) * 2;
  for (const Candidate &tiles : candidates) {
    int64_t bytes =
        tiles.staying *
            (footprint.stayingRows * rowBytes + footprint.stayingBytes) +
        tiles.streaming *
            (footprint.streamingRows * rowBytes + footprint.streamingBytes) +
        footprint.bytes;
    if (bytes <= architecture.maxSharedBytes())
      return MmaTiles{tiles.staying, tiles.streaming, tiles.warps,
                      static_cast<unsigned>(bytes)};
  }
  return std::nullopt;
}

// 32 rows a warp read shared memory half as often as 16, but for head dims
// above 128 their sums do not fit into the registers. Where shared memory has
// room for one block only, 8 warps hide more than 4.
std::optional<MmaTiles>
fsdpq::cuda::mmaForwardTiles(const AttentionParams &params,
                             const Architecture &architecture) {
  // For queries: the first key that is seen. The block's place.
  const Footprint footprint = {1, 4, sizeof(int), 0, 2 * sizeof(int)};
  int64_t dim = mmaPaddedDim(params);
  bool roomForTwo = architecture.maxSharedBytes() >= 160 * 1024 || dim <= 64;
  if (dim <= 128 && roomForTwo)
    return firstThatFits(params, architecture, footprint, {{128, 64, 4}});
  return firstThatFits(params, architecture, footprint,
                       {{128, 64, 8}, {128, 32, 8}, {64, 32, 4}});
}

std::optional<MmaTiles>
fsdpq::cuda::mmaGradQTiles(const AttentionParams &params,
                           const Architecture &architecture) {
  const Footprint footprint = {2, 4, 0, 0, 0};
  if (mmaPaddedDim(params) <= 128)
    return firstThatFits(params, architecture, footprint,
                         {{128, 64, 8}, {128, 32, 8}});
  return firstThatFits(params, architecture, footprint,
                       {{128, 32, 8}, {64, 32, 4}, {64, 16, 4}});
}

std::optional<MmaTiles>
fsdpq::cuda::mmaGradKVTiles(const AttentionParams &params,
                            const Architecture &architecture) {
  // For two stages of queries: lse, delta and the first key that is seen.
  const Footprint footprint = {2, 4, 0, 2 * 3 * sizeof(float), 0};
  if (mmaPaddedDim(params) <= 128)
    return firstThatFits(params, architecture, footprint,
                         {{128, 64, 8}, {128, 32, 8}});
  return firstThatFits(params, architecture, footprint,
                       {{128, 32, 8}, {64, 32, 4}, {64, 16, 4}});
}

bool fsdpq::cuda::hasMmaAttention(const AttentionParams &params,
                                  const Architecture &architecture) {
  return architecture.capability >= 80 && params.headDim > 0 &&
         params.headDim % 8 == 0 && params.headDim <= 256 &&
         params.kvHeads > 0 && params.heads > 0 &&
         params.heads % params.kvHeads == 0 &&
         // The largest score is looked for before it is scaled.
         params.scale > 0 && std::isfinite(params.scale) &&
         params.window >= 0 && mmaForwardTiles(params, architecture) &&
         mmaGradQTiles(params, architecture) &&
         mmaGradKVTiles(params, architecture);
}

LaunchShape fsdpq::cuda::mmaLaunch(const MmaTiles &tiles) {
  LaunchShape launch;
  launch.threads = 32 * tiles.warps;
  launch.sharedBytes = tiles.sharedBytes;
  launch.itemsPerBlock = tiles.staying / 32;
  return launch;
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

std::string fsdpq::cuda::mmaConstants(const AttentionParams &params,
                                      int queryRows, int keyRows, int warps) {
  // No micro-batch has more rows; a longer window is none.
  constexpr int64_t manyRows = int64_t(1) << 30;
  return substitute(
      R"(enum : int {
  heads = @HEADS@, kvHeads = @KV_HEADS@, group = @GROUP@, // of heads to a key head
  headDim = @E@, paddedDim = @PADDED@, // columns; those after headDim are zeros
  qPitch = @Q_PITCH@, kvPitch = @KV_PITCH@, oPitch = @O_PITCH@,
  window = @WINDOW@, // 0: none
  queryRows = @QUERY_ROWS@, keyRows = @KEY_ROWS@, // of tiles
  warps = @WARPS@, threads = 32 * warps
};
constexpr float scaleLog2 = @SCALE_LOG2@; // of scores, times log2(e)
constexpr float hidden = -1e30f; // a score that gives no weight
)",
      {{"HEADS", std::to_string(params.heads)},
       {"KV_HEADS", std::to_string(params.kvHeads)},
       {"GROUP", std::to_string(params.heads / params.kvHeads)},
       {"E", std::to_string(params.headDim)},
       {"PADDED", std::to_string(mmaPaddedDim(params))},
       {"Q_PITCH", std::to_string(params.qPitch())},
       {"KV_PITCH", std::to_string(params.kvPitch())},
       {"O_PITCH", std::to_string(params.heads * params.headDim)},
       {"WINDOW", std::to_string(params.window < manyRows ? params.window : 0)},
       {"QUERY_ROWS", std::to_string(queryRows)},
       {"KEY_ROWS", std::to_string(keyRows)},
       {"WARPS", std::to_string(warps)},
       {"SCALE_LOG2", floatLiteral(params.scale * std::numbers::log2e)}});
}

static constexpr std::string_view copyInstruction = R"(
__device__ __forceinline__ void cp_async_16(void *shared, const void *global) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"
               :
               : "r"((unsigned)__cvta_generic_to_shared(shared)), "l"(global)
               : "memory");
}
)";

static constexpr std::string_view copyOrZeroInstruction = R"(
// Copies 16 bytes, or writes zeros if not valid.
__device__ __forceinline__ void cp_async_16_zero(void *shared, const void *global,
                                                 bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               :
               : "r"((unsigned)__cvta_generic_to_shared(shared)), "l"(global),
                 "r"(bytes)
               : "memory");
}
)";

static constexpr std::string_view otherInstructions = R"(
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int pending> __device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory");
}

__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const void *shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"((unsigned)__cvta_generic_to_shared(shared))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4],
                                                  const void *shared) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"((unsigned)__cvta_generic_to_shared(shared))
      : "memory");
}

// c += a b for 16 x 16 a and 16 x 8 b of bf16
__device__ __forceinline__ void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4],
                                             const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ unsigned bf16x2_of(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)";

std::string fsdpq::cuda::mmaInstructions(const AttentionParams &params) {
  bool padded = mmaPaddedDim(params) != params.headDim;
  std::string text = "\ntypedef unsigned short bf16;\n";
  text += padded ? copyOrZeroInstruction : copyInstruction;
  text += otherInstructions;
  return text;
}

std::string fsdpq::cuda::mmaTileText(const AttentionParams &params) {
  bool padded = mmaPaddedDim(params) != params.headDim;
  return substitute(
      R"(
// A tile is rows of paddedDim columns one after the other, in shared memory. The
// chunks of 16 bytes of a row are permuted so that the same chunk of 8 rows one
// after the other lies in 8 different groups of banks.
constexpr int chunks = paddedDim / 8, rowBytes = paddedDim * 2;
constexpr int swizzleSpan = chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : 2;

__device__ __forceinline__ unsigned offset_of(unsigned row, unsigned chunk) {
  const unsigned turn = row / (8 / swizzleSpan) % swizzleSpan;
  return row * rowBytes + ((chunk ^ turn) << 4);
}

// `chunk` (even, a literal) chunks after `offset`, that of a row's chunk 0 or 1
__device__ __forceinline__ unsigned at_chunk(unsigned offset, unsigned chunk) {
  const unsigned within = chunk % swizzleSpan;
  return (offset ^ (within << 4)) + ((chunk - within) << 4);
}

// Where lanes read four matrices of 8 x 8: after rows 0 to 7 of chunk 0 come rows 8
// to 15 and then chunk 1, or chunk 1 and then the other rows.
__device__ __forceinline__ unsigned rows_first(int lane) {
  return offset_of(lane & 15, lane >> 4);
}
__device__ __forceinline__ unsigned chunks_first(int lane) {
  return offset_of((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
}

// starts the copy of `rows` rows of headDim columns
template <int rows, int pitch>
__device__ __forceinline__ void copy_tile(unsigned char *tile, const bf16 *from) {
  constexpr bool even = threads % chunks == 0; // a thread has one chunk of rows
  const int thread = threadIdx.x;
#pragma unroll
  for (int i = 0; i < (rows * chunks + threads - 1) / threads; ++i) {
    const int at = i * threads + thread;
    const int row = even ? thread / chunks + i * (threads / chunks) : at / chunks;
    const int chunk = even ? thread % chunks : at % chunks;
    if (rows * chunks % threads == 0 || at < rows * chunks)
      @COPY@;
  }
}

// c[16 M x N] += a[16 M x paddedDim] b[N x paddedDim]^T; a, b: what lanes read
template <int M, int N>
__device__ __forceinline__ void add_a_bt(float (&c)[M][N / 8][4],
                                         const unsigned char *shared, unsigned a,
                                         unsigned b) {
#pragma unroll
  for (int k = 0; k < paddedDim / 16; ++k) {
    unsigned left[M][4];
#pragma unroll
    for (int i = 0; i < M; ++i)
      ldmatrix_x4(left[i], shared + at_chunk(a, 2 * k) + i * 16 * rowBytes);
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
      unsigned right[4];
      ldmatrix_x4(right, shared + at_chunk(b, 2 * k) + n * 16 * rowBytes);
#pragma unroll
      for (int i = 0; i < M; ++i) {
        mma_m16n8k16(c[i][2 * n], left[i], {right[0], right[1]});
        mma_m16n8k16(c[i][2 * n + 1], left[i], {right[2], right[3]});
      }
    }
  }
}

// c[16 M x paddedDim] += p[16 M x 16 K] b[16 K x paddedDim]; p is in registers: for
// 8 columns each, the upper and the lower 8 rows
template <int M, int K>
__device__ __forceinline__ void add_p_b(float (&c)[M][paddedDim / 8][4],
                                        const unsigned (&p)[M][2 * K][2],
                                        const unsigned char *shared, unsigned b) {
#pragma unroll
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int n = 0; n < paddedDim / 16; ++n) {
      unsigned right[4];
      ldmatrix_x4_trans(right, shared + at_chunk(b, 2 * n) + k * 16 * rowBytes);
#pragma unroll
      for (int i = 0; i < M; ++i) {
        const unsigned left[4] = {p[i][2 * k][0], p[i][2 * k][1],
                                  p[i][2 * k + 1][0], p[i][2 * k + 1][1]};
        mma_m16n8k16(c[i][2 * n], left, {right[0], right[1]});
        mma_m16n8k16(c[i][2 * n + 1], left, {right[2], right[3]});
      }
    }
}

// Stores 16 rows that a warp holds, times a factor for the upper and one for the
// lower 8. `tile`: 16 rows that no other warp uses.
template <int pitch>
__device__ __forceinline__ void store_rows(unsigned char *tile, bf16 *to,
                                           const float (&c)[paddedDim / 8][4],
                                           float upper, float lower) {
  const int lane = threadIdx.x % 32;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < paddedDim / 8; ++n) {
    *(unsigned *)(tile + offset_of(lane / 4, n) + lane % 4 * 4) =
        bf16x2_of(c[n][0] * upper, c[n][1] * upper);
    *(unsigned *)(tile + offset_of(lane / 4 + 8, n) + lane % 4 * 4) =
        bf16x2_of(c[n][2] * lower, c[n][3] * lower);
  }
  __syncwarp();
  constexpr int stored = headDim / 8;
#pragma unroll
  for (int i = 0; i < (16 * stored + 31) / 32; ++i) {
    const int at = i * 32 + lane, row = at / stored, chunk = at % stored;
    if (stored % 2 == 0 || row < 16)
      *(uint4 *)(to + (long long)row * pitch + chunk * 8) =
          *(const uint4 *)(tile + offset_of(row, chunk));
  }
  __syncwarp();
}

// the first row that `row` sees
__device__ __forceinline__ int first_seen(const int *segments, int row) {
  const int segment = segments[row];
  return window == 0 ? segment : max(segment, row - (window - 1));
}

struct Place {
  int tile, head;
};

// Which tile and head the block is for, of `perHead` heads for each key head. Key
// heads of which as many as `streamed` columns of all rows lie in half of a cache
// are computed together; their tiles begin in order.
template <int perHead, int streamed>
__device__ __forceinline__ Place place_of_block(int tiles, int rows) {
  const int block = blockIdx.x, fitting = (24 << 20) / (streamed * 2) / rows;
  const int together = max(1, min((int)kvHeads, fitting));
  const int first = block / (tiles * perHead * together) * together;
  const int width = min(together, kvHeads - first) * perHead;
  const int within = block - first * perHead * tiles;
  return {within / width, first * perHead + within % width};
}
)",
      {{"COPY",
        padded
            ? "cp_async_16_zero(tile + offset_of(row, chunk),\n"
              "                       from + (long long)row * pitch + "
              "chunk * 8,\n"
              "                       chunk < headDim / 8)"
            : "cp_async_16(tile + offset_of(row, chunk),\n"
              "                  from + (long long)row * pitch + chunk * 8)"}});
}

MmaOperands fsdpq::cuda::mmaOperands(const AttentionParams &params) {
  if (!params.packed)
    return {"const bf16 *q, const bf16 *k, const bf16 *v,", ""};
  return {"const bf16 *qkv,", "  const bf16 *q = qkv, *k = qkv + " +
                                  std::to_string(params.kColumn()) +
                                  ", *v = qkv + " +
                                  std::to_string(params.vColumn()) + ";\n"};
}
