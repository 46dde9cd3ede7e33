//===- CrossEntropy.cpp - CUDA text of the fused loss ---------------------===//
//
// A thread block takes a row. A first pass finds the largest logit and the sum
// of exponentials together: a thread's sum is rescaled when it meets a larger
// logit. A second pass writes the gradient, backwards. What it needs last, and
// was read first, waits in shared memory; what does not fit there is read again
// and was read last, so that the L2 cache has most likely kept it.
//
// A row need not begin at a multiple of 16 bytes: the elements before the first
// such address and after the last are taken one a thread.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/Skeletons/CrossEntropy.h"
#include "compiler/Target/Cuda/Skeletons/Conversions.h"
#include "compiler/Target/Cuda/Skeletons/TextTemplate.h"

#include <algorithm>

using namespace fsdpq::cuda;

static constexpr std::string_view head =
    R"(constexpr int VOCABULARY = @VOCABULARY@;
constexpr int THREADS = @THREADS@, WIDTH = @WIDTH@; // elements of 16 bytes
constexpr int BATCH = @BATCH@; // chunks of 16 bytes that a thread loads at once
constexpr int KEPT = @KEPT@; // a thread's first chunks, which stay in shared memory
constexpr float LOWEST = -3.0e38f; // below all logits, and no infinity
typedef @VALUE@ Value;
)";

static constexpr std::string_view bf16Text = R"(
__device__ __forceinline__ float value_of(Value x) {
  return __uint_as_float((unsigned)x << 16);
}

__device__ __forceinline__ void unpack(float (&v)[WIDTH], uint4 chunk) {
  v[0] = low_of(chunk.x), v[1] = high_of(chunk.x);
  v[2] = low_of(chunk.y), v[3] = high_of(chunk.y);
  v[4] = low_of(chunk.z), v[5] = high_of(chunk.z);
  v[6] = low_of(chunk.w), v[7] = high_of(chunk.w);
}

__device__ __forceinline__ uint4 pack(const float (&v)[WIDTH]) {
  return make_uint4(bf16x2_of(v[0], v[1]), bf16x2_of(v[2], v[3]),
                    bf16x2_of(v[4], v[5]), bf16x2_of(v[6], v[7]));
}
)";

static constexpr std::string_view f32Text = R"(
__device__ __forceinline__ float value_of(Value x) { return x; }

__device__ __forceinline__ void unpack(float (&v)[WIDTH], uint4 chunk) {
  v[0] = __uint_as_float(chunk.x), v[1] = __uint_as_float(chunk.y);
  v[2] = __uint_as_float(chunk.z), v[3] = __uint_as_float(chunk.w);
}

__device__ __forceinline__ uint4 pack(const float (&v)[WIDTH]) {
  return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]),
                    __float_as_uint(v[2]), __float_as_uint(v[3]));
}
)";

static constexpr std::string_view body = R"(
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// exp(x - largest)
__device__ __forceinline__ float power_of(float x, float largest) {
  return exp2_approx((x - largest) * 1.4426950408889634f);
}

/// The sum of exp(x - largest) over some logits.
struct Sum {
  float largest, sum;
};

__device__ __forceinline__ void add(Sum &to, Sum other) {
  const float largest = fmaxf(to.largest, other.largest);
  to.sum = to.sum * power_of(to.largest, largest) +
           other.sum * power_of(other.largest, largest);
  to.largest = largest;
}

/// Adds those of as many lanes; all have the same result.
template <int lanes>
__device__ __forceinline__ void add_lanes(Sum &sum) {
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2)
    add(sum, Sum{__shfl_xor_sync(0xffffffffu, sum.largest, step),
                 __shfl_xor_sync(0xffffffffu, sum.sum, step)});
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
fused_cross_entropy(const int *targets, Value *logits, float *loss, double weight,
                    long long items) {
  extern __shared__ uint4 kept[];
  __shared__ Sum sumOfWarps[THREADS / 32];
  const int t = threadIdx.x;
  const long long row = blockIdx.x;
  const int target = targets[row];
  Value *x = logits + row * VOCABULARY;

  // Chunks are counted from the first multiple of 16 bytes.
  int lead = 0;
  if (VOCABULARY % WIDTH) {
    lead = (int)(-((long long)x / (long long)sizeof(Value)) & (WIDTH - 1));
    lead = lead < VOCABULARY ? lead : VOCABULARY;
  }
  uint4 *chunks = (uint4 *)(x + lead);
  const int count = (VOCABULARY - lead) / WIDTH;
  // This thread's own elements before and after the chunks.
  const int before = t < lead ? t : -1;
  int after = lead + count * WIDTH + t;
  after = after < VOCABULARY ? after : -1;

  if (target < 0) {
    const Value zero = 0;
    for (int i = t; i < count; i += THREADS)
      chunks[i] = make_uint4(0, 0, 0, 0);
    if (before >= 0)
      x[before] = zero;
    if (after >= 0)
      x[after] = zero;
    if (t == 0)
      loss[row] = 0.0f;
    return;
  }

  const float chosen = value_of(x[target]);
  Sum sum{LOWEST, 0.0f};
  if (before >= 0)
    add(sum, Sum{value_of(x[before]), 1.0f});
  if (after >= 0)
    add(sum, Sum{value_of(x[after]), 1.0f});
  for (int first = t; first < count; first += BATCH * THREADS) {
    uint4 batch[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; ++i)
      if (first + i * THREADS < count)
        batch[i] = chunks[first + i * THREADS];
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      if (first + i * THREADS >= count)
        break;
      if (first < KEPT * THREADS)
        kept[first + i * THREADS] = batch[i];
      float v[WIDTH];
      unpack(v, batch[i]);
      float largest = sum.largest;
#pragma unroll
      for (int k = 0; k < WIDTH; ++k)
        largest = fmaxf(largest, v[k]);
      sum.sum *= power_of(sum.largest, largest);
      sum.largest = largest;
#pragma unroll
      for (int k = 0; k < WIDTH; ++k)
        sum.sum += power_of(v[k], largest);
    }
  }
  add_lanes<32>(sum);
  if (t % 32 == 0)
    sumOfWarps[t / 32] = sum;
  __syncthreads(); // all have read what the others will overwrite
  sum = sumOfWarps[t % (THREADS / 32)];
  add_lanes<THREADS / 32>(sum);
  if (t == 0)
    loss[row] = logf(sum.sum) + sum.largest - chosen;

  const float scale = (float)weight, factor = scale / sum.sum;
  for (int first = (count - 1) / (BATCH * THREADS) * (BATCH * THREADS) + t;
       first >= 0; first -= BATCH * THREADS) {
    uint4 batch[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      if (first < KEPT * THREADS)
        batch[i] = kept[first + i * THREADS];
      else if (first + i * THREADS < count)
        batch[i] = chunks[first + i * THREADS];
    }
#pragma unroll
    for (int i = 0; i < BATCH; ++i) {
      const int chunk = first + i * THREADS;
      if (chunk >= count)
        break;
      float v[WIDTH];
      unpack(v, batch[i]);
#pragma unroll
      for (int k = 0; k < WIDTH; ++k)
        v[k] = power_of(v[k], sum.largest) * factor;
      const int place = target - lead - chunk * WIDTH;
      if (0 <= place && place < WIDTH) {
#pragma unroll
        for (int k = 0; k < WIDTH; ++k)
          v[k] -= k == place ? scale : 0.0f;
      }
      chunks[chunk] = pack(v);
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int own = i ? after : before;
    if (own < 0)
      continue;
    const float p = power_of(value_of(x[own]), sum.largest) * factor;
    x[own] = @ROUNDED@(own == target ? p - scale : p);
  }
}
)";

KernelText fsdpq::cuda::emitFusedCrossEntropy(const CrossEntropyParams &p) {
  // So that a multiprocessor has room for several blocks. At most 96 KiB.
  constexpr int64_t threads = 512, batch = 4, mostKept = 12;
  const int64_t width = p.bf16 ? 8 : 4;
  const int64_t span =
      batch * threads * width; // logits of a batch of all threads
  const int64_t kept =
      std::min(mostKept, (p.vocabulary + span - 1) / span * batch);
  std::string text =
      substitute(head, {{"VOCABULARY", std::to_string(p.vocabulary)},
                        {"THREADS", std::to_string(threads)},
                        {"WIDTH", std::to_string(width)},
                        {"BATCH", std::to_string(batch)},
                        {"KEPT", std::to_string(kept)},
                        {"VALUE", p.bf16 ? "unsigned short" : "float"}});
  if (p.bf16) {
    text += fromBf16Text;
    text += toBf16Text;
  }
  text += p.bf16 ? bf16Text : f32Text;
  text += substitute(body, {{"ROUNDED", p.bf16 ? "bf16_of" : ""}});

  KernelText kernel{"fused_cross_entropy", std::move(text), {}};
  kernel.launch.threads = threads;
  kernel.launch.itemsPerBlock = 1;
  kernel.launch.sharedBytes = kept * threads * 16;
  return kernel;
}
