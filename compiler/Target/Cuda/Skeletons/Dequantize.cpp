//===- Dequantize.cpp - CUDA text of values from 4-bit codes --------------===//
//
// Bound by memory. What makes it fast, as measured: packed codes loaded before
// the barrier, eight loads in flight a thread; one scale a block of elements,
// computed once into shared memory; a table of values whose 16 entries lie in
// 16 banks; stores of 16 bytes that are next to each other in a warp.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/Skeletons/Conversions.h"
#include "compiler/Target/Cuda/Skeletons/Quantised.h"
#include "compiler/Target/Cuda/Skeletons/QuantizeParts.h"

using namespace fsdpq::cuda;

static constexpr int threads = 256, chunks = 8;

static constexpr std::string_view head = R"(// Elements, and elements a scale.
constexpr long long COUNT = @COUNT@;
constexpr int BLOCK = @BLOCK@;
// A thread makes CHUNKS chunks of WIDTH elements, 16 bytes each.
constexpr int THREADS = @THREADS@, CHUNKS = @CHUNKS@, WIDTH = @WIDTH@;
constexpr int TILE = THREADS * CHUNKS * WIDTH;
constexpr bool IS_RAGGED = COUNT % TILE != 0; // the last tile is not full
typedef @PACKED@ Packed; // the codes of a chunk
typedef @VALUE@ Value;
)";

static constexpr std::string_view body = R"(
/// Where element e goes.
__device__ __forceinline__ unsigned long long place_of(@INDEX@ e) {
  return @PLACE@;
}

extern "C" __global__ void __launch_bounds__(THREADS)
dequantize(const unsigned char *__restrict__ codes,
           @SCALES@,
           Value *__restrict__ y, long long items) {
  __shared__ float table[16];
  __shared__ float scales[TILE / BLOCK];
  const int t = threadIdx.x;
  const long long begin = (long long)blockIdx.x * TILE;
  const int rest = COUNT - begin < TILE ? (int)(COUNT - begin) : TILE;
  codes += begin / 2;

  Packed packed[CHUNKS];
#pragma unroll
  for (int i = 0; i < CHUNKS; ++i) {
    const int e = (i * THREADS + t) * WIDTH;
    packed[i] = 0;
    if (!IS_RAGGED || e + WIDTH <= rest)
      packed[i] = *(const Packed *)(codes + e / 2);
  }
  if (t < 16)
    table[t] = codebook[t];
  for (int i = t; i < TILE / BLOCK && i * BLOCK < rest; i += THREADS) {
    const long long block = blockIdx.x * (long long)(TILE / BLOCK) + i;
    scales[i] = @SCALE@;
  }
  __syncthreads();

  const bool isWide = @IS_WIDE@;
  if (isWide) {
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i) {
      const int e = (i * THREADS + t) * WIDTH;
      if (IS_RAGGED && e + WIDTH > rest)
        break;
      float v[WIDTH];
#pragma unroll
      for (int k = 0; k < WIDTH; ++k) // the first of two is in the high half
        v[k] = __fmul_rn(table[packed[i] >> 4 * (k ^ 1) & 15],
                         scales[e / BLOCK + k / BLOCK]);
      @STORE@
    }
  }

  // What no chunk holds: the last elements, or all if y is not aligned.
#pragma unroll 1
  for (int e = (isWide ? rest / WIDTH * WIDTH : 0) + 2 * t; e < rest;
       e += 2 * THREADS) {
    const int pair = codes[e / 2];
    y[place_of(begin + e)] =
        @ONE@(__fmul_rn(table[pair >> 4], scales[e / BLOCK]));
    if (e + 1 < rest)
      y[place_of(begin + e + 1)] =
          @ONE@(__fmul_rn(table[pair & 15], scales[(e + 1) / BLOCK]));
  }
}
)";

KernelText fsdpq::cuda::emitDequantize(const QuantisedParams &p) {
  const int width = p.bf16 ? 8 : 4;
  const bool hasWideRows =
      !p.rowColumns || (p.rowColumns % width == 0 && p.rowPitch % width == 0);
  std::string text =
      substitute(head, {{"COUNT", std::to_string(p.count)},
                        {"BLOCK", std::to_string(p.block)},
                        {"THREADS", std::to_string(threads)},
                        {"CHUNKS", std::to_string(chunks)},
                        {"WIDTH", std::to_string(width)},
                        {"PACKED", p.bf16 ? "unsigned" : "unsigned short"},
                        {"VALUE", p.bf16 ? "unsigned short" : "float"}});
  text += "\n" + tableText("codebook", p.codebook);
  if (p.nested)
    text += tableText("scaleCodebook", p.scaleCodebook);
  if (p.bf16)
    text += toBf16Text;
  std::string place = "e";
  if (p.rowColumns) {
    std::string columns = std::to_string(p.rowColumns);
    place = "(unsigned long long)(e / " + columns + ") * " +
            std::to_string(p.rowPitch) + " + e % " + columns;
  }
  text += substitute(
      body,
      {{"INDEX",
        p.count < int64_t(1) << 32 ? "unsigned" : "unsigned long long"},
       {"PLACE", place},
       {"SCALES", p.nested
                      ? "const unsigned char *__restrict__ absmax,\n"
                        "           const float *__restrict__ nestedAbsmax,\n"
                        "           const float *__restrict__ offset"
                      : "const float *__restrict__ absmax"},
       {"SCALE", p.nested ? "__fadd_rn( // two roundings, no fma\n"
                            "        __fmul_rn(scaleCodebook[absmax[block]],\n"
                            "                  nestedAbsmax[block / " +
                                std::to_string(p.nested) +
                                "]),\n"
                                "        *offset)"
                          : "absmax[block]"},
       {"IS_WIDE", hasWideRows ? "((unsigned long long)y & 15) == 0" : "false"},
       {"STORE", p.bf16 ? "*(uint4 *)(y + place_of(begin + e)) =\n"
                          "          make_uint4(bf16x2_of(v[0], v[1]), "
                          "bf16x2_of(v[2], v[3]),\n"
                          "                     bf16x2_of(v[4], v[5]), "
                          "bf16x2_of(v[6], v[7]));"
                        : "*(float4 *)(y + place_of(begin + e)) =\n"
                          "          make_float4(v[0], v[1], v[2], v[3]);"},
       {"ONE", p.bf16 ? "bf16_of" : ""}});

  KernelText kernel{"dequantize", std::move(text), {}};
  kernel.launch.threads = threads;
  kernel.launch.itemsPerBlock = threads * chunks * width / p.block;
  return kernel;
}
