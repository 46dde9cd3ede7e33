//===- AttentionDelta.cpp - CUDA text of rowsum(dO * O) -------------------===//
//
// Bound by memory. A head's columns are as many loads of 16 bytes by lanes that
// are next to each other; a thread has four heads' loads in flight.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/Skeletons/Attention.h"
#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"

#include <algorithm>
#include <bit>

using namespace fsdpq::cuda;

static constexpr int threads = 256, unrolled = 4;

static constexpr std::string_view text =
    R"(// delta[row, head] = sum of dO * O over the head's columns
typedef unsigned short bf16;
enum : int {
  heads = @HEADS@, headDim = @E@,
  chunks = headDim / 8, // of 16 bytes
  lanes = @LANES@,      // for a head: a power of two
  rowsOfBlock = @ROWS@, threads = @THREADS@, unrolled = @UNROLLED@
};

// a.low b.low + a.high b.high of two bf16
__device__ __forceinline__ float dot2(unsigned a, unsigned b) {
  return __uint_as_float(a << 16) * __uint_as_float(b << 16) +
         __uint_as_float(a & 0xffff0000u) * __uint_as_float(b & 0xffff0000u);
}

extern "C" __global__ void __launch_bounds__(threads)
attention_delta(const bf16 *gradO, const bf16 *o, float *delta, long long items) {
  // The heads of all rows lie one after the other, here and in delta.
  const long long firstRow = (long long)blockIdx.x * rowsOfBlock;
  const int count = (int)min((long long)rowsOfBlock, items - firstRow) * heads;
  const int lane = threadIdx.x % lanes;
  gradO += firstRow * (heads * headDim) + lane * 8;
  o += firstRow * (heads * headDim) + lane * 8;
  delta += firstRow * heads;
  constexpr int pass = threads / lanes; // heads at a time
  for (int begin = 0; begin < count; begin += unrolled * pass) {
    uint4 x[unrolled], y[unrolled];
#pragma unroll
    for (int i = 0; i < unrolled; ++i) {
      const int at = begin + i * pass + threadIdx.x / lanes;
      x[i] = y[i] = make_uint4(0, 0, 0, 0);
      if (at < count && lane < chunks) {
        x[i] = *(const uint4 *)(gradO + (long long)at * headDim);
        y[i] = *(const uint4 *)(o + (long long)at * headDim);
      }
    }
#pragma unroll
    for (int i = 0; i < unrolled; ++i) {
      const int at = begin + i * pass + threadIdx.x / lanes;
      float sum = dot2(x[i].x, y[i].x) + dot2(x[i].y, y[i].y) +
                  dot2(x[i].z, y[i].z) + dot2(x[i].w, y[i].w);
#pragma unroll
      for (int step = lanes / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
      if (at < count && lane == 0)
        delta[at] = sum;
    }
  }
}
)";

KernelText fsdpq::cuda::emitAttentionDelta(const AttentionParams &params) {
  int64_t chunks = params.headDim / 8;
  auto lanes =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(chunks)));
  int64_t rows =
      std::max<int64_t>(1, unrolled * threads / lanes / params.heads);
  KernelText kernel{"attention_delta",
                    substitute(text, {{"HEADS", std::to_string(params.heads)},
                                      {"E", std::to_string(params.headDim)},
                                      {"LANES", std::to_string(lanes)},
                                      {"ROWS", std::to_string(rows)},
                                      {"THREADS", std::to_string(threads)},
                                      {"UNROLLED", std::to_string(unrolled)}}),
                    {}};
  kernel.launch.threads = threads;
  kernel.launch.itemsPerBlock = rows;
  return kernel;
}
