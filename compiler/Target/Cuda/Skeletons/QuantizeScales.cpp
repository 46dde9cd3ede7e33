//===- QuantizeScales.cpp - CUDA text of rounding scales to 8 bits --------===//
//
// A thread block takes one nested block after the other and keeps the borders
// between codes in shared memory.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/Skeletons/Quantised.h"
#include "compiler/Target/Cuda/Skeletons/QuantizeParts.h"

#include <algorithm>

using namespace fsdpq::cuda;

static constexpr std::string_view head =
    R"(constexpr long long COUNT = @COUNT@; // scales
constexpr int NESTED = @NESTED@;           // scales a nested scale
constexpr int BORDERS = 255;
constexpr int THREADS = @THREADS@;

)";

static constexpr std::string_view body = R"(
extern "C" __global__ void __launch_bounds__(THREADS)
quantize_scales(const float *__restrict__ absmax, const float *__restrict__ offset,
                unsigned char *__restrict__ codes,
                float *__restrict__ nestedAbsmax, long long items) {
  __shared__ float borders[BORDERS];
  __shared__ float largestOfWarps[THREADS / 32];
  const int t = threadIdx.x;
  for (int i = t; i < BORDERS; i += THREADS)
    borders[i] = thresholds[i];
  const float mean = *offset;

  for (long long item = blockIdx.x; item < items; item += gridDim.x) {
    const long long begin = item * NESTED;
    const bool isShort = COUNT - begin < NESTED;
    const int count = isShort ? (int)(COUNT - begin) : NESTED;
    float largest = 0.0f;
    for (int i = t; i < count; i += THREADS)
      largest = fmaxf(largest, fabsf(__fsub_rn(absmax[begin + i], mean)));
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
    if (t % 32 == 0)
      largestOfWarps[t / 32] = largest;
    __syncthreads();
#pragma unroll
    for (int warp = 0; warp < THREADS / 32; ++warp)
      largest = fmaxf(largest, largestOfWarps[warp]);
    if (t == 0)
      nestedAbsmax[item] = largest;
    const float reciprocal = __fdiv_rn(1.0f, largest);
    for (int i = t; i < count; i += THREADS) {
      const float x = __fsub_rn(absmax[begin + i], mean);
      codes[begin + i] = (unsigned char)rank_of(
          scaled_of(x, largest, reciprocal, isShort), borders);
    }
    __syncthreads(); // largestOfWarps is written again
  }
}
)";

KernelText fsdpq::cuda::emitQuantizeScales(const QuantisedParams &p) {
  const unsigned threads = std::clamp<int64_t>(p.nested, 32, 256);
  std::string text = substitute(head, {{"COUNT", std::to_string(p.count)},
                                       {"NESTED", std::to_string(p.nested)},
                                       {"THREADS", std::to_string(threads)}});
  text += tableText("thresholds", p.thresholds);
  text += rankText;
  text += scaledText;
  text += body;

  KernelText kernel{"quantize_scales", std::move(text), {}};
  kernel.launch.threads = threads;
  kernel.launch.itemsPerBlock = 1;
  kernel.launch.blocksPerProcessor = 2048 / threads;
  return kernel;
}
