//===- Quantize.cpp - CUDA text of rounding to 4-bit codes ----------------===//
//
// A thread holds chunks of 4 elements, a warp 128 that are next to each other
// for each chunk. The largest magnitude of a block is found by shuffles among
// the threads that hold it, and for blocks of more than 128 elements through
// shared memory. It does not depend on the order. The borders between codes lie
// in 15 different banks, so that the look-ups of a warp never collide.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/Skeletons/Quantised.h"
#include "compiler/Target/Cuda/Skeletons/QuantizeParts.h"

#include <algorithm>
#include <limits>

using namespace fsdpq::cuda;

static constexpr int threads = 256, chunks = 4, width = 4;
static constexpr int tile = threads * chunks * width;

static constexpr std::string_view head = R"(// Elements, and elements a scale.
constexpr long long COUNT = @COUNT@;
constexpr int BLOCK = @BLOCK@;
constexpr int BORDERS = 15;
// A thread holds CHUNKS chunks of 4 elements.
constexpr int THREADS = @THREADS@, CHUNKS = @CHUNKS@;
constexpr int TILE = THREADS * CHUNKS * 4;
constexpr bool IS_RAGGED = COUNT % TILE != 0; // the last tile is not full
constexpr int LANES = @LANES@; // threads of a warp that hold one block

)";

static constexpr std::string_view body = R"(
extern "C" __global__ void __launch_bounds__(THREADS)
quantize(const float *__restrict__ src, unsigned char *__restrict__ codes,
         float *__restrict__ absmax, long long items) {
  __shared__ float borders[BORDERS];
  @SHARED@
  const int t = threadIdx.x;
  const long long begin = (long long)blockIdx.x * TILE;
  const int rest = COUNT - begin < TILE ? (int)(COUNT - begin) : TILE;
  src += begin;
  codes += begin / 2;
  absmax += begin / BLOCK;

  float x[CHUNKS][4]; // zeros where there are no elements
#pragma unroll
  for (int i = 0; i < CHUNKS; ++i) {
    const int e = (i * THREADS + t) * 4;
    if (!IS_RAGGED || e + 4 <= rest) {
      const float4 four = *(const float4 *)(src + e);
      x[i][0] = four.x, x[i][1] = four.y, x[i][2] = four.z, x[i][3] = four.w;
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        x[i][k] = e + k < rest ? src[e + k] : 0.0f;
    }
  }
@ROUND@  if (t < BORDERS)
    borders[t] = thresholds[t];

  float largest[CHUNKS];
#pragma unroll
  for (int i = 0; i < CHUNKS; ++i) {
    largest[i] = fmaxf(fmaxf(fabsf(x[i][0]), fabsf(x[i][1])),
                       fmaxf(fabsf(x[i][2]), fabsf(x[i][3])));
#pragma unroll
    for (int step = 1; step < LANES; step *= 2)
      largest[i] =
          fmaxf(largest[i], __shfl_xor_sync(0xffffffff, largest[i], step));
  }
@COMBINE@  __syncthreads();

#pragma unroll
  for (int i = 0; i < CHUNKS; ++i) {
    const int e = (i * THREADS + t) * 4;
    if (IS_RAGGED && e >= rest)
      break;
    if (e % BLOCK == 0)
      absmax[e / BLOCK] = largest[i];
    const bool isShort = @IS_SHORT@;
    const float reciprocal = __fdiv_rn(1.0f, largest[i]);
    int code[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      code[k] = code_of(scaled_of(x[i][k], largest[i], reciprocal, isShort), borders);
    // The first of two is in the high half. An odd count is padded with a zero.
    const int first = code[0] << 4 | code[1], second = code[2] << 4 | code[3];
    if (!IS_RAGGED || e + 2 < rest)
      *(unsigned short *)(codes + e / 2) = (unsigned short)(second << 8 | first);
    else
      codes[e / 2] = (unsigned char)first;
  }
}
)";

/// Values as they would be stored, to the nearest bf16 and to even in the middle.
static constexpr std::string_view roundingText = R"(
__device__ __forceinline__ float rounded(float x) {
  const unsigned bits = __float_as_uint(x);
  return __uint_as_float((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}
)";
static constexpr std::string_view roundAll = R"(#pragma unroll
  for (int i = 0; i < CHUNKS; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k)
      x[i][k] = rounded(x[i][k]);
)";

/// The largest of blocks that several rows of 128 elements make.
static constexpr std::string_view combine = R"(
  constexpr int ROWS = BLOCK / 128; // warps' chunks that make a block
#pragma unroll
  for (int i = 0; i < CHUNKS; ++i)
    if (t % 32 == 0)
      largestOfRows[(i * THREADS + t) / 32] = largest[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < CHUNKS; ++i) {
    const int row = (i * THREADS + t) / 32 / ROWS * ROWS;
    for (int k = 0; k < ROWS; ++k)
      largest[i] = fmaxf(largest[i], largestOfRows[row + k]);
  }
)";

/// code_of(x, borders): the code whose value is nearest.
static std::string codeText(const std::vector<int> &codesByValue) {
  std::string code = "rank_of(x, borders)";
  // For nf4 the codes are in the order of their values.
  if (!std::is_sorted(codesByValue.begin(), codesByValue.end())) {
    // Infinity is above the borders that are padding, too.
    unsigned long long packed = 0;
    for (size_t rank = 0; rank < 16; ++rank)
      packed |= static_cast<unsigned long long>(
                    codesByValue[std::min(rank, codesByValue.size() - 1)])
                << (4 * rank);
    char literal[32];
    std::snprintf(literal, sizeof literal, "0x%llxull", packed);
    code = "(int)(" + std::string(literal) + " >> 4 * " + code + ") & 15";
  }
  return "\n__device__ __forceinline__ int code_of(float x, const float "
         "*borders) {\n"
         "  return " +
         code + ";\n}\n";
}

KernelText fsdpq::cuda::emitQuantize(const QuantisedParams &p) {
  std::vector<float> borders = p.thresholds;
  borders.resize(15, std::numeric_limits<float>::max());
  std::string text = substitute(
      head,
      {{"COUNT", std::to_string(p.count)},
       {"BLOCK", std::to_string(p.block)},
       {"THREADS", std::to_string(threads)},
       {"CHUNKS", std::to_string(chunks)},
       {"LANES", std::to_string(std::min<int64_t>(p.block / width, 32))}});
  text += tableText("thresholds", borders);
  text += rankText;
  text += scaledText;
  text += codeText(p.codesByValue);
  if (p.roundFirst)
    text += roundingText;
  const bool hasLargeBlocks = p.block > 128, hasShortBlock = p.count % p.block;
  text += substitute(
      body,
      {{"SHARED",
        hasLargeBlocks ? "__shared__ float largestOfRows[TILE / 128];" : ""},
       {"ROUND", p.roundFirst ? std::string(roundAll) : ""},
       {"COMBINE", hasLargeBlocks ? std::string(combine) : ""},
       {"IS_SHORT", hasShortBlock ? "e >= rest / BLOCK * BLOCK" : "false"}});

  KernelText kernel{"quantize", std::move(text), {}};
  kernel.launch.threads = threads;
  kernel.launch.itemsPerBlock = tile / p.block;
  return kernel;
}
