//===- Rope.cpp - CUDA text of rotary positions ---------------------------===//
//
// Bound by memory. A thread rotates the same 8 pairs of up to 4 heads, which
// have their cosines and sines in common; all its loads are in flight at once.
// Threads that are next to each other take the pieces of a head, then the next
// heads.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/Skeletons/Rope.h"
#include "compiler/Target/Cuda/Skeletons/Conversions.h"
#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"

#include <algorithm>

using namespace fsdpq::cuda;

namespace {

/// How a thread block is dealt out.
struct Shape {
  int64_t stride; ///< heads that are rotated at a time
  int64_t steps;  ///< heads a thread rotates, at most 4
  int64_t lanes;  ///< threads of a row

  explicit Shape(const RopeParams &p)
      : stride((p.heads + 3) / 4), steps((p.heads + stride - 1) / stride),
        lanes(stride * (p.headDim / 16)) {}
};

} // namespace

bool fsdpq::cuda::hasRope(const RopeParams &p) {
  return p.headDim % 16 == 0 && p.columns % 8 == 0 && Shape(p).lanes <= 1024;
}

static constexpr std::string_view head = R"(constexpr int COLUMNS = @COLUMNS@;
constexpr int HEADS = @HEADS@, HALF = @HALF@; // half a head
constexpr int CHUNKS = HALF / 8; // of 8 pairs in a head
// A thread rotates STEPS heads, STRIDE apart.
constexpr int STEPS = @STEPS@, STRIDE = @STRIDE@;
constexpr bool IS_RAGGED = STEPS * STRIDE != HEADS; // some threads have one less
constexpr int LANES = STRIDE * CHUNKS; // threads of a row
constexpr int ROWS = @ROWS@;
)";

static constexpr std::string_view body = R"(
/// Rotates two pairs by the two angles that the pointers begin with.
__device__ __forceinline__ void rotate(unsigned &first, unsigned &second,
                                       const float *cosines, const float *sines) {
  const float a0 = low_of(first), a1 = high_of(first);
  const float b0 = low_of(second), b1 = high_of(second);
  first = bf16x2_of(fmaf(a0, cosines[0], @MINUS@b0 * sines[0]),
                    fmaf(a1, cosines[1], @MINUS@b1 * sines[1]));
  second = bf16x2_of(fmaf(b0, cosines[0], @PLUS@a0 * sines[0]),
                     fmaf(b1, cosines[1], @PLUS@a1 * sines[1]));
}

extern "C" __global__ void __launch_bounds__(@THREADS@)
@SYMBOL@(const float *__restrict__ table, unsigned short *__restrict__ x,
     long long items) {
  const int lane = threadIdx.x % LANES;
  const long long row = (long long)blockIdx.x * ROWS + threadIdx.x / LANES;
  if (threadIdx.x >= ROWS * LANES || row >= items)
    return;
  const int chunk = lane % CHUNKS, head = lane / CHUNKS;
  x += row * COLUMNS + head * (2 * HALF) + chunk * 8;
  table += row * (2 * HALF) + chunk * 8;

  uint4 first[STEPS], second[STEPS];
#pragma unroll
  for (int i = 0; i < STEPS; ++i) {
    if (IS_RAGGED && head + i * STRIDE >= HEADS)
      break;
    first[i] = *(const uint4 *)(x + i * (STRIDE * 2 * HALF));
    second[i] = *(const uint4 *)(x + i * (STRIDE * 2 * HALF) + HALF);
  }
  float cosines[8], sines[8];
#pragma unroll
  for (int k = 0; k < 8; k += 4) {
    const float4 c = *(const float4 *)(table + k);
    const float4 s = *(const float4 *)(table + HALF + k);
    cosines[k] = c.x, cosines[k + 1] = c.y, cosines[k + 2] = c.z, cosines[k + 3] = c.w;
    sines[k] = s.x, sines[k + 1] = s.y, sines[k + 2] = s.z, sines[k + 3] = s.w;
  }
#pragma unroll
  for (int i = 0; i < STEPS; ++i) {
    if (IS_RAGGED && head + i * STRIDE >= HEADS)
      break;
    rotate(first[i].x, second[i].x, cosines, sines);
    rotate(first[i].y, second[i].y, cosines + 2, sines + 2);
    rotate(first[i].z, second[i].z, cosines + 4, sines + 4);
    rotate(first[i].w, second[i].w, cosines + 6, sines + 6);
    *(uint4 *)(x + i * (STRIDE * 2 * HALF)) = first[i];
    *(uint4 *)(x + i * (STRIDE * 2 * HALF) + HALF) = second[i];
  }
}
)";

KernelText fsdpq::cuda::emitRope(const RopeParams &p) {
  const Shape shape(p);
  // About 256 threads, of whole rows.
  const int64_t rows =
      std::max<int64_t>(1, (256 + shape.lanes / 2) / shape.lanes);
  const int64_t threads = (rows * shape.lanes + 31) / 32 * 32;
  std::string text = substitute(head, {{"COLUMNS", std::to_string(p.columns)},
                                       {"HEADS", std::to_string(p.heads)},
                                       {"HALF", std::to_string(p.headDim / 2)},
                                       {"STEPS", std::to_string(shape.steps)},
                                       {"STRIDE", std::to_string(shape.stride)},
                                       {"ROWS", std::to_string(rows)}});
  text += fromBf16Text;
  text += toBf16Text;
  const std::string symbol = p.inverse ? "rope_inverse" : "rope";
  text += substitute(body, {{"SYMBOL", symbol},
                            {"THREADS", std::to_string(threads)},
                            {"MINUS", p.inverse ? "" : "-"},
                            {"PLUS", p.inverse ? "-" : ""}});

  KernelText kernel{symbol, std::move(text), {}};
  kernel.launch.threads = threads;
  kernel.launch.itemsPerBlock = rows;
  return kernel;
}
