//===- WgmmaPieces.cpp - What the wgmma attention texts share -------------===//

#include "compiler/Target/Cuda/Skeletons/WgmmaPieces.h"
#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"

#include <numbers>

using namespace fsdpq::cuda;

bool fsdpq::cuda::hasWgmmaAttention(const AttentionParams &params,
                                    const Architecture &architecture) {
  return architecture.hasWarpgroupProducts() && params.window == 0 &&
         (params.headDim == 64 || params.headDim == 128) &&
         params.kvHeads > 0 && params.heads > 0 &&
         params.heads % params.kvHeads == 0;
}

std::string fsdpq::cuda::wgmmaConstants(const AttentionParams &params,
                                        int64_t tileHeads,
                                        int64_t streamedHeads) {
  // Half of the L2 cache of the GPUs that have wgmma (50 MiB).
  constexpr int64_t cacheBytes = 24 << 20;
  int64_t tileBytes = 128 * streamedHeads * params.headDim * 2 * 2;
  return substitute(
      R"(enum : int {
  HEADS = @HEADS@, KV_HEADS = @KV_HEADS@, GROUP = @GROUP@,
  E = @E@, PIECES = @PIECES@, // columns of a head; pieces of 64 columns
  Q_COLUMN = 0, K_COLUMN = @K_COLUMN@, V_COLUMN = @V_COLUMN@,
  Q_PITCH = @Q_PITCH@, KV_PITCH = @KV_PITCH@, O_PITCH = HEADS * E,
  TILE_HEADS = @TILE_HEADS@, SORTED_TILES = @SORTED_TILES@
};
constexpr float SCALE = @SCALE@, SCALE_LOG2 = @SCALE_LOG2@; // of scores; times log2(e)
)",
      {{"HEADS", std::to_string(params.heads)},
       {"KV_HEADS", std::to_string(params.kvHeads)},
       {"GROUP", std::to_string(params.heads / params.kvHeads)},
       {"E", std::to_string(params.headDim)},
       {"PIECES", std::to_string(params.headDim / 64)},
       {"K_COLUMN", std::to_string(params.kColumn())},
       {"V_COLUMN", std::to_string(params.vColumn())},
       {"Q_PITCH", std::to_string(params.qPitch())},
       {"KV_PITCH", std::to_string(params.kvPitch())},
       {"SCALE", floatLiteral(params.scale)},
       {"SCALE_LOG2", floatLiteral(params.scale * std::numbers::log2e)},
       {"TILE_HEADS", std::to_string(tileHeads)},
       {"SORTED_TILES", std::to_string(cacheBytes / tileBytes)}});
}

const std::string_view fsdpq::cuda::wgmmaPrelude = R"(
// ---- instructions ----
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#define DEV __device__ __forceinline__
struct alignas(64) TensorMap { u64 opaque[16]; };

DEV u32 address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEV int uniform(int x) { return __shfl_sync(~0u, x, 0); } // tells the compiler so
DEV u32 bf16x2(float low, float high) { u32 d; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low)); return d; }
DEV float ex2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
DEV float quad_max(float x) { x = fmaxf(x, __shfl_xor_sync(~0u, x, 1)); return fmaxf(x, __shfl_xor_sync(~0u, x, 2)); }
DEV float quad_sum(float x) { x += __shfl_xor_sync(~0u, x, 1); return x + __shfl_xor_sync(~0u, x, 2); }
DEV float2 load2(u32 a) { float2 v; asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(a)); return v; }

DEV void mb_init(u32 b, u32 n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(b), "r"(n)); }
DEV void mb_expect(u32 b, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(b), "r"(bytes) : "memory"); }
DEV void mb_arrive(u32 b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(b) : "memory"); }
DEV void mb_wait(u32 b, u32 parity) { asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra.uni D;\nbra.uni W;\nD:\n}" :: "r"(b), "r"(parity) : "memory"); }
DEV void mb_publish() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV void tma(u32 to, const TensorMap* map, int column, int row, u32 b) { asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(to), "l"(map), "r"(column), "r"(row), "r"(b) : "memory"); }
DEV void bulk(u32 to, const void* from, int bytes, u32 b) { asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(to), "l"(from), "r"(bytes), "r"(b) : "memory"); }
DEV void bar_sync(int id, int n) { asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(n) : "memory"); }
DEV void bar_arrive(int id, int n) { asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(n) : "memory"); }
template <int N> DEV void registers_up() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N)); }
template <int N> DEV void registers_down() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N)); }
// position and phase in a ring of N barriers
template <int N> DEV void advance(int& stage, int& phase) { if (++stage == N) { stage = 0; phase ^= 1; } }

DEV void wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEV void wg_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEV void wg_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
// accumulators of an asynchronous product must not be read or moved before its wait
template <int N> DEV void keep(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(x[i])::"memory");
}
template <int N> DEV void zero(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    x[i] = 0.f;
    asm volatile("" : "+f"(x[i])::"memory");
  }
}

// Matrix descriptors, 128-byte swizzle: bits 0-13 address / 16, 16-29 lbo / 16, 32-45
// sbo / 16, 62-63 = 1; pieces of 64 columns, aligned to 1024 bytes.
// K-major operand: sbo = 1024 (8 rows of 128 bytes), lbo unused; the next 16 of K are
// 32 bytes on. N-major operand (rows are K): lbo = bytes from piece to piece, sbo =
// 1024; the next 16 of K are 2048 bytes on. The low word is made once and stepped with
// one 32-bit add; the high word is constant.
DEV u32 desc_low(u32 address, u32 lbo) { return address >> 4 | (lbo >> 4) << 16; }
DEV u64 desc(u32 low, u32 bytes) { return (u64)(1u << 30 | 1024 >> 4) << 32 | (low + (bytes >> 4)); }

// 64 x 2N accumulators of a warpgroup times f0 (rows of the upper half of 16), f1 (lower)
// -> bf16 -> to[row, column]. The lanes of a quad transpose 4 x 4 words, so that each
// holds 8 columns side by side and the quad writes 64 bytes of a row.
template <int PITCH, int N> DEV void store(u16* to, const float (&c)[N], float f0, float f1, int warp, int lane) {
  const int t = lane & 3;
  const bool b0 = t & 1, b1 = t & 2;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int row = warp * 16 + r * 8 + lane / 4;
    const float f = r ? f1 : f0;
#pragma unroll
    for (int i = 0; i < N / 16; i++) {
      u32 x[4], y;
#pragma unroll
      for (int k = 0; k < 4; k++) x[k] = bf16x2(c[(4 * i + k) * 4 + 2 * r] * f, c[(4 * i + k) * 4 + 2 * r + 1] * f);
#pragma unroll
      for (int k = 0; k < 2; k++) {
        y = __shfl_xor_sync(~0u, b1 ? x[k] : x[k + 2], 2);
        if (b1) x[k] = y;
        else x[k + 2] = y;
      }
#pragma unroll
      for (int k = 0; k < 4; k += 2) {
        y = __shfl_xor_sync(~0u, b0 ? x[k] : x[k + 1], 1);
        if (b0) x[k] = y;
        else x[k + 1] = y;
      }
      *(uint4*)(to + (u64)row * PITCH + (4 * i + t) * 8) = make_uint4(x[0], x[1], x[2], x[3]);
    }
  }
}
)";

namespace {

/// One product 64 x columns x 16. `first`: starts a sum, with pure outputs, so
/// that nothing waits for the old values. `registers`: the left operand is in
/// registers and the right one N-major; else both are in shared memory and
/// K-major.
std::string product(int columns, bool first, bool registers) {
  int count = columns / 2;
  std::string accumulators, outputs;
  for (int i = 0; i < count; ++i) {
    accumulators += (i ? ", %" : "%") + std::to_string(i);
    outputs += (i ? ", \"" : "\"") + std::string(first ? "=" : "+") + "f\"(d[" +
               std::to_string(i) + "])";
  }
  auto operand = [&](int i) { return "%" + std::to_string(count + i); };
  std::string left = registers ? "{" + operand(0) + ", " + operand(1) + ", " +
                                     operand(2) + ", " + operand(3) + "}, " +
                                     operand(4)
                               : operand(0) + ", " + operand(1);
  return substitute(
      R"(DEV void @NAME@(float (&d)[@COUNT@], @LEFT@, u64 b) { asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, @SUM@, 0;\nwgmma.mma_async.sync.aligned.m64n@COLUMNS@k16.f32.bf16.bf16 {@ACCUMULATORS@}, @OPERANDS@, p, 1, 1, @MAJOR@;\n}"
    : @OUTPUTS@
    : @INPUTS@, "l"(b)); }
)",
      {{"NAME", first ? "first_product" : "add_product"},
       {"COUNT", std::to_string(count)},
       {"LEFT", registers ? "const u32 (&a)[4]" : "u64 a"},
       {"SUM", first ? "0" : "1"},
       {"COLUMNS", std::to_string(columns)},
       {"ACCUMULATORS", accumulators},
       {"OPERANDS", left},
       {"MAJOR", registers ? "1" : "0, 0"},
       {"OUTPUTS", outputs},
       {"INPUTS", registers ? R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]))"
                            : R"("l"(a))"}});
}

} // namespace

std::string fsdpq::cuda::wgmmaProducts(int sharedColumns, int registerColumns) {
  return "\n// ---- products: 64 x columns accumulators of a warpgroup ----\n" +
         product(sharedColumns, /*first=*/true, /*registers=*/false) +
         product(sharedColumns, /*first=*/false, /*registers=*/false) +
         product(registerColumns, /*first=*/false, /*registers=*/true);
}

const std::string_view fsdpq::cuda::wgmmaSchedule = R"(
// ---- order of the tiles ----
// A tile is 128 rows of one head. What it costs follows from the segments and is the
// same for all heads, so each block sorts the tiles of a head by falling cost.
// Dealt out over all heads at once, forth and back, work is even whatever the segments
// are. That is done for few tiles, for tiles that find all they read in the L2 cache,
// and where few heads mean that many tiles of each run side by side. Else units are
// dealt out, head by head, so that tiles which read the same rows run side by side: a
// unit is the tile of rank i and its mirror of rank tiles - 1 - i; units cost about the
// same.
constexpr int MAX_TILES = 2048; // above: not sorted, the last tiles first
DEV u32 sort_key(int tile, int cost) { return (u32)cost << 16 | (0xffff - tile); }
// keys: of all tiles, with zeros up to a multiple of 4; by all threads of the block
DEV void sort_tiles(u16* order, const u32* keys, int tiles) {
  for (int i = threadIdx.x; i < tiles; i += blockDim.x) {
    const u32 key = keys[i];
    int rank = 0;
    for (int j = 0; j < tiles; j += 4) {
      const uint4 other = *(const uint4*)(keys + j);
      rank += (other.x > key) + (other.y > key) + (other.z > key) + (other.w > key);
    }
    order[rank] = i;
  }
}
// tiles of queries by the tiles of keys that they see; by all 384 threads
DEV void sort_query_tiles(u16* order, u32* keys, const int* segments, int tiles) {
  for (int i = threadIdx.x; i < (tiles + 3) / 4 * 4; i += 384) keys[i] = i < tiles ? sort_key(i, i + 1 - segments[i * 128] / 128) : 0;
  __syncthreads();
  sort_tiles(order, keys, tiles);
}
struct Schedule {
  const u16* order;
  u32 tiles, step;
  DEV static u32 turn(u32 round) { return round * gridDim.x + (round & 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x); }
  // the next tile; -1: no more
  DEV int next(int& head) {
    u32 rank;
    head = 0;
    if (TILE_HEADS <= 16 || tiles <= SORTED_TILES || tiles * TILE_HEADS < 2 * gridDim.x) {
      const u32 at = turn(step);
      if (at >= tiles * TILE_HEADS) return -1;
      rank = at / TILE_HEADS;
      head = at % TILE_HEADS;
      step++;
    } else {
      const u32 pairs = (tiles + 1) / 2;
#pragma unroll 1
      for (bool middle = true; middle; step++) {
        const u32 unit = turn(step >> 1);
        if (unit >= pairs * TILE_HEADS) return -1;
        head = unit / pairs;
        const u32 pair = unit % pairs;
        rank = step & 1 ? tiles - 1 - pair : pair;
        middle = step & 1 && rank == pair; // of an odd number: it has no mirror
      }
    }
    return tiles <= MAX_TILES ? order[rank] : tiles - 1 - rank;
  }
};
)";

const std::string_view fsdpq::cuda::wgmmaGradBlocks = R"(
// ---- products of the gradients: a tile of 128 rows stays, blocks of 64 pass ----
constexpr int STAGES = 4;
constexpr float LOG2E = 1.4426950408889634f;
constexpr int TILE = 128 * E * 2, BLOCK = 64 * E * 2; // bytes

// 64 x 64 = rows of a tile times rows of a block, transposed
DEV void inner(float (&c)[32], u32 tile, u32 block) {
  const u32 a = desc_low(tile, 16), b = desc_low(block, 16);
  first_product(c, desc(a, 0), desc(b, 0));
#pragma unroll
  for (int i = 1; i < E / 16; i++) add_product(c, desc(a, (i >> 2) * 128 * 128 + (i & 3) * 32), desc(b, (i >> 2) * 64 * 128 + (i & 3) * 32));
}
// 64 x E += p times the block
DEV void outer(float (&c)[E / 2], const u32 (&p)[4][4], u32 block) {
  const u32 b = desc_low(block, 64 * 128);
#pragma unroll
  for (int i = 0; i < 4; i++) add_product(c, p[i], desc(b, i * 2048));
}
)";

WgmmaOperands fsdpq::cuda::wgmmaOperands(const AttentionParams &params,
                                         unsigned boxRows, bool withGrad) {
  WgmmaOperands result;
  LaunchShape &launch = result.launch;
  launch.threads = 384;
  launch.itemsPerBlock = 4;
  launch.blocksPerProcessor = 1;
  auto map = [&](unsigned argument, int64_t columns) {
    launch.maps.push_back({argument, 64, boxRows, 0, columns, columns});
  };
  auto parameter = [&](const char *name) {
    result.maps += std::string(", const __grid_constant__ TensorMap ") + name;
    return std::string(name);
  };
  unsigned argument = 0;
  if (params.packed) {
    result.matrices = "const u16* qkv";
    result.q = result.k = result.v = parameter("qkv_map");
    map(argument++, params.qPitch());
  } else {
    result.matrices = "const u16* q, const u16* k, const u16* v";
    result.q = parameter("q_map");
    map(argument++, params.qPitch());
    result.k = parameter("k_map");
    map(argument++, params.kvPitch());
    result.v = parameter("v_map");
    map(argument++, params.kvPitch());
  }
  if (withGrad) {
    result.dO = parameter("do_map");
    map(argument++, params.heads * params.headDim);
  }
  return result;
}
