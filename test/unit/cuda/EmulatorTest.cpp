//===- EmulatorTest.cpp - The emulator on small texts ---------------------===//

#include "test/unit/cuda/Emulator.h"
#include "test/unit/cuda/GuardedBuffer.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <gmock/gmock.h>
#include <random>

using namespace fsdpq;
using namespace fsdpq::test;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// A kernel `k` of one block per item.
static EmulatedKernel compile(const std::string &text, unsigned threads,
                              unsigned sharedBytes = 0) {
  cuda::KernelText kernel{"k", text, {threads, sharedBytes, 1, 0, {}}};
  return EmulatedKernel::compile(kernel);
}

static const Order bothOrders[] = {Order::Ascending, Order::Descending};

static uint16_t bf16Of(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static float floatOf(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

/// Small whole numbers: products and sums are exact.
static std::vector<uint16_t> wholeBf16(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<uint16_t> values(count);
  for (uint16_t &value : values)
    value = bf16Of(float(int(generator() % 17) - 8));
  return values;
}

// Definitions of helpers, with less in them than an emitter prints.
static const char *const mmaHelpers = R"(
#define DEV __device__ __forceinline__
DEV void cp_async_16(void *shared, const void *global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :: "r"((unsigned)__cvta_generic_to_shared(shared)), "l"(global));
}
DEV void cp_async_16_zero(void *to, const void *from, bool valid) { asm("..."); }
DEV void cp_async_commit() { asm volatile("cp.async.commit_group;"); }
template <int N> DEV void cp_async_wait() { asm("{ %0; }" :: "n"(N)); }
DEV void ldmatrix_x4(unsigned (&r)[4], const void *shared) { asm("..."); }
DEV void ldmatrix_x2(unsigned (&r)[2], const void *shared) { asm("..."); }
DEV void ldmatrix_x2_trans(unsigned (&r)[2], const void *shared) { asm("..."); }
DEV void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3},"
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(c[0]));
}
)";

/// The error of one block for each of the texts of statements, run alone. They
/// have `float *out` of 64 elements, `thread`, `float shared[]`, the helpers above
/// and begin at line 1.
static std::vector<std::string> errorsOf(const std::vector<std::string> &statements,
                                         unsigned threads, unsigned sharedBytes) {
  std::string text = mmaHelpers + std::string(R"(
    extern "C" __global__ void k(float *out, long long which, long long items) {
      extern __shared__ float shared[];
      unsigned fragment[4];
      const int thread = threadIdx.x;
)");
  for (size_t i = 0; i < statements.size(); ++i)
    text += "if (which == " + std::to_string(i) + ") {\n#line 1\n" + statements[i] +
            "\n}\n";
  EmulatedKernel kernel = compile(text + "}", threads, sharedBytes);
  EXPECT_EQ(kernel.error(), "");
  std::vector<std::string> errors;
  for (size_t i = 0; i < statements.size(); ++i) {
    GuardedBuffer<float> out(64);
    errors.push_back(kernel.launch({out.data(), i}, 1));
  }
  return errors;
}

TEST(Emulator, BlockSumWithShufflesAndSharedMemory) {
  EmulatedKernel kernel = compile(R"(
    __device__ __forceinline__ float warp_sum(float x) {
      #pragma unroll
      for (int i = 16; i; i /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, i);
      return x;
    }
    extern "C" __global__ void __launch_bounds__(256) k(
        const float *__restrict__ x, float *__restrict__ sums, long long columns,
        double scale, long long items) {
      __shared__ float partial[8];
      for (long long row = blockIdx.x; row < items; row += gridDim.x) {
        float sum = 0;
        for (int i = threadIdx.x; i < columns; i += blockDim.x)
          sum += x[row * columns + i];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0)
          partial[threadIdx.x / 32] = sum;
        __syncthreads();
        float total = threadIdx.x < 8 ? partial[threadIdx.x] : 0.0f;
        if (threadIdx.x < 32)
          total = warp_sum(total);
        if (threadIdx.x == 0)
          sums[row] = (float)(total * scale);
        __syncthreads();
      }
    })",
                                  256);
  ASSERT_EQ(kernel.error(), "");
  constexpr int rows = 7, columns = 1000;
  GuardedBuffer<float> x(rows * columns);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i % 13);
  for (Order order : bothOrders) {
    GuardedBuffer<float> sums(rows);
    ASSERT_EQ(kernel.launch({x.data(), sums.data(), columns, 0.5}, rows, 3, order),
              "");
    for (int row = 0; row < rows; ++row) {
      float sum = 0;
      for (int i = 0; i < columns; ++i)
        sum += x[row * columns + i];
      EXPECT_EQ(sums[row], sum / 2) << row;
    }
  }
}

TEST(Emulator, GridFollowsTheLaunchShape) {
  cuda::KernelText text{
      "grid",
      "extern \"C\" __global__ void grid(int *blocks, long long items)"
      "{ atomicAdd(blocks, threadIdx.x == 0); }",
      {}};
  text.launch.threads = 32;
  text.launch.itemsPerBlock = 10;
  int blocks = 0;
  ASSERT_EQ(EmulatedKernel::compile(text).launch({&blocks}, 101), "");
  EXPECT_EQ(blocks, 11);
  text.launch.blocksPerProcessor = 2;
  blocks = 0;
  ASSERT_EQ(EmulatedKernel::compile(text).launch({&blocks}, 101, 4), "");
  EXPECT_EQ(blocks, 8);
  blocks = 0;
  ASSERT_EQ(EmulatedKernel::compile(text).launch({&blocks}, 0), "");
  EXPECT_EQ(blocks, 0);
}

TEST(Emulator, Shuffles) {
  EmulatedKernel kernel = compile(R"(
    extern "C" __global__ void k(int *out, double *wide, long long items) {
      const int t = threadIdx.x;
      int *own = out + t * 8;
      own[0] = __shfl_sync(~0u, t, 5);
      own[1] = __shfl_sync(~0u, t, 9, 8);
      own[2] = __shfl_up_sync(~0u, t, 3, 16);
      own[3] = __shfl_down_sync(~0u, t, 3, 16);
      own[4] = __shfl_xor_sync(~0u, t, 17);
      own[5] = __ballot_sync(~0u, t % 3 == 0);
      // The halves of a warp need not agree.
      if (t % 32 < 16)
        for (int i = 0; i < 3; ++i)
          own[6] = __shfl_xor_sync(0x0000ffffu, t, i);
      else
        own[6] = __shfl_down_sync(0xffff0000u, t, 1, 16);
      __syncwarp();
      own[7] = __any_sync(~0u, t == 40) + 2 * __all_sync(~0u, t >= 32);
      wide[t] = __shfl_xor_sync(~0u, 0.1 * t, 1);
    })",
                                  64);
  ASSERT_EQ(kernel.error(), "");
  GuardedBuffer<int> out(64 * 8);
  GuardedBuffer<double> wide(64);
  ASSERT_EQ(kernel.launch({out.data(), wide.data()}, 1), "");
  unsigned threes[2] = {};
  for (int t = 0; t < 64; ++t)
    threes[t / 32] |= unsigned(t % 3 == 0) << t % 32;
  for (int t = 0; t < 64; ++t) {
    const int warp = t / 32 * 32, lane = t % 32;
    const std::vector<int> own(&out[t * 8], &out[t * 8] + 8);
    EXPECT_THAT(
        own, ElementsAre(
                 warp + 5, warp + lane / 8 * 8 + 1, lane % 16 < 3 ? t : t - 3,
                 lane % 16 >= 13 ? t : t + 3, warp + (lane ^ 17), int(threes[t / 32]),
                 lane < 16 ? t ^ 2 : std::min(t + 1, warp + 31), t < 32 ? 0 : 3));
    EXPECT_EQ(wide[t], 0.1 * (t ^ 1));
  }
}

TEST(Emulator, VectorsAndIntrinsics) {
  EmulatedKernel kernel = compile(R"(
    typedef unsigned short u16;
    __constant__ float table[4] = {1, 2, 3, 4};
    __device__ unsigned bf16x2_of(float low, float high) {
      unsigned d;
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
      return d;
    }
    __device__ u16 bf16_of(float x) {
      u16 d; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(d) : "f"(x)); return d; }
    __device__ float exp2_approx(float x) {
      float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
    extern "C" __global__ void k(const u16 *in, u16 *out, unsigned *bits,
                                 long long items) {
      const uint4 v = __ldg(reinterpret_cast<const uint4 *>(in) + threadIdx.x);
      const float scale = table[threadIdx.x % 4];
      auto low = [&](unsigned x) { return __uint_as_float(x << 16) * scale; };
      auto high = [&](unsigned x) { return __uint_as_float(x & 0xffff0000u) * scale; };
      __stcs(reinterpret_cast<uint4 *>(out) + threadIdx.x,
             make_uint4(bf16x2_of(low(v.x), high(v.x)), bf16x2_of(low(v.y), high(v.y)),
                        bf16x2_of(low(v.z), high(v.z)),
                        bf16_of(low(v.w)) | (unsigned)bf16_of(high(v.w)) << 16));
      if (threadIdx.x == 0) {
        bits[0] = __byte_perm(0x33221100u, 0x77665544u, 0x7052);
        bits[1] = __brev(1) + __clz(0x10000) + __popc(0xff);
        bits[2] = __umulhi(0x80000000u, 6);
        bits[3] = __float_as_uint(__fmaf_rn(3, 4, exp2_approx(-1)));
        bits[4] = __float_as_uint(exp2_approx(-140));
        bits[5] = bf16_of(__uint_as_float(0x7f800001));
        bits[6] = max(3, 4) + min(2u, 1u) + (unsigned)fmaxf(rsqrtf(0.25f), 1);
      }
    })",
                                  32);
  ASSERT_EQ(kernel.error(), "");
  std::vector<uint16_t> in(32 * 8);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = bf16Of(0.37f * float(i) - 31);
  GuardedBuffer<uint16_t> guarded(in), out(in.size());
  GuardedBuffer<unsigned> bits(7);
  ASSERT_EQ(kernel.launch({guarded.data(), out.data(), bits.data()}, 1), "");
  for (size_t i = 0; i < in.size(); ++i)
    EXPECT_EQ(out[i], bf16Of(floatOf(in[i]) * float(i / 8 % 4 + 1))) << i;
  EXPECT_THAT(bits.values(),
              ElementsAre(0x77005522, 0x80000000u + 15 + 8, 3,
                          std::bit_cast<unsigned>(12.5f), 0, 0x7fff, 7));
}

// a [16 x 32] times b: from b [32 x 8] by transposed loads, or from bt [8 x 32].
TEST(Emulator, MmaTileAgainstPlainProduct) {
  EmulatedKernel kernel = compile(mmaHelpers + std::string(R"(
    extern "C" __global__ void k(const uint4 *a, const uint4 *b, const uint4 *bt,
                                 float *c, float *ct, long long items) {
      __shared__ __align__(16) unsigned short as[16][40], bs[32][8], bts[8][40];
      const int lane = threadIdx.x, row = lane / 4, column = lane % 4 * 8;
      for (int i = 0; i < 16; i += 8)
        *(uint4 *)&as[row + i][column] = a[lane + i * 4];
      *(uint4 *)&bs[lane][0] = b[lane];
      *(uint4 *)&bts[row][column] = bt[lane];
      __syncwarp();
      float sum[4] = {0, 0, 0, 0}, sumT[4] = {1, 1, 1, 1};
      for (int k = 0; k < 32; k += 16) {
        unsigned af[4], bf[2], btf[2];
        ldmatrix_x4(af, &as[lane % 16][k + lane / 16 * 8]);
        ldmatrix_x2_trans(bf, &bs[k + lane % 16][0]);
        ldmatrix_x2(btf, &bts[lane % 8][k + lane / 8 % 2 * 8]);
        mma_m16n8k16(sum, af, bf);
        mma_m16n8k16(sumT, af, btf);
      }
      for (int i = 0; i < 4; ++i) {
        const int at = (row + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2;
        c[at] = sum[i];
        ct[at] = sumT[i];
      }
    })"),
                                  32);
  ASSERT_EQ(kernel.error(), "");
  const auto a = wholeBf16(16 * 32, 1), b = wholeBf16(32 * 8, 2);
  std::vector<uint16_t> bt(b.size());
  for (int k = 0; k < 32; ++k)
    for (int n = 0; n < 8; ++n)
      bt[n * 32 + k] = b[k * 8 + n];
  GuardedBuffer<uint16_t> ga(a), gb(b), gbt(bt);
  for (Order order : bothOrders) {
    GuardedBuffer<float> c(128), ct(128);
    ASSERT_EQ(kernel.launch({ga.data(), gb.data(), gbt.data(), c.data(), ct.data()},
                            1, 1, order),
              "");
    for (int m = 0; m < 16; ++m)
      for (int n = 0; n < 8; ++n) {
        float sum = 0;
        for (int k = 0; k < 32; ++k)
          sum += floatOf(a[m * 32 + k]) * floatOf(b[k * 8 + n]);
        EXPECT_EQ(c[m * 8 + n], sum) << m << ", " << n;
        EXPECT_EQ(ct[m * 8 + n], sum + 1) << m << ", " << n;
      }
  }
}

/// Sums `items` tiles of 32 x 4 floats through two stages of shared memory; tiles
/// past the end are zeros. `wait`: the statement before a tile is used; `after`:
/// that before its stage is filled again.
static EmulatedKernel pipeline(const std::string &wait, const std::string &after) {
  return compile(mmaHelpers + std::string(R"(
    extern "C" __global__ void k(const float *in, float *out, long long tiles,
                                 long long items) {
      extern __shared__ __align__(16) float stage[];
      const int t = threadIdx.x;
      auto load = [&](long long tile) {
        cp_async_16_zero(stage + tile % 2 * 256 + t * 4, in + tile * 256 + t * 4,
                         tile < tiles);
        cp_async_commit();
      };
      float sum[4] = {0, 0, 0, 0};
      load(0);
      for (long long tile = 0; tile < tiles; ++tile) {
        load(tile + 1);
        )") + wait + R"(
        // Read what another thread copied.
        for (int i = 0; i < 4; ++i)
          sum[i] += stage[tile % 2 * 256 + (t ^ 33) * 4 + i];
        )" + after + R"(
      }
      for (int i = 0; i < 4; ++i)
        out[t * 4 + i] = sum[i];
    })",
                 64, 2 * 1024);
}

static std::vector<float> runPipeline(const EmulatedKernel &kernel, Order order) {
  constexpr int tiles = 5;
  std::vector<float> in(tiles * 256);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = float(i);
  GuardedBuffer<float> guarded(in), out(256);
  EXPECT_EQ(kernel.launch({guarded.data(), out.data(), tiles}, 1, 1, order), "");
  return out.values();
}

static std::vector<float> pipelineSums() {
  std::vector<float> sums(256);
  for (int t = 0; t < 64; ++t)
    for (int i = 0; i < 4; ++i)
      for (int tile = 0; tile < 5; ++tile)
        sums[t * 4 + i] += float(tile * 256 + (t ^ 33) * 4 + i);
  return sums;
}

TEST(Emulator, CopyPipeline) {
  EmulatedKernel kernel =
      pipeline("cp_async_wait<1>(); __syncthreads();", "__syncthreads();");
  for (Order order : bothOrders)
    EXPECT_EQ(runPipeline(kernel, order), pipelineSums());
}

TEST(Emulator, CopyPipelineThatWaitsTooLittle) {
  EmulatedKernel kernel =
      pipeline("cp_async_wait<2>(); __syncthreads();", "__syncthreads();");
  for (Order order : bothOrders)
    EXPECT_NE(runPipeline(kernel, order), pipelineSums());
}

TEST(Emulator, CopyPipelineWithoutABarrier) {
  EmulatedKernel kernel = pipeline("cp_async_wait<1>();", "__syncthreads();");
  EXPECT_NE(runPipeline(kernel, Order::Ascending), pipelineSums());
}

TEST(Emulator, CopyIntoAStageThatOthersStillRead) {
  EmulatedKernel kernel = pipeline("cp_async_wait<1>(); __syncthreads();", "");
  EXPECT_NE(runPipeline(kernel, Order::Ascending), pipelineSums());
}

TEST(Emulator, OrdersDifferWhereAKernelRaces) {
  EmulatedKernel kernel = compile(R"(
    extern "C" __global__ void k(int *out, long long items) { *out = threadIdx.x; })",
                                  64);
  int out = -1;
  ASSERT_EQ(kernel.launch({&out}, 1), "");
  EXPECT_EQ(out, 63);
  ASSERT_EQ(kernel.launch({&out}, 1, 1, Order::Descending), "");
  EXPECT_EQ(out, 0);
}

TEST(Emulator, SharedMemoryIsGarbageInEveryBlock) {
  EmulatedKernel kernel = compile(R"(
    extern "C" __global__ void k(float *out, long long items) {
      extern __shared__ float dynamic[];
      __shared__ float fixed[32];
      out[blockIdx.x] = dynamic[threadIdx.x] + fixed[threadIdx.x];
      dynamic[threadIdx.x] = fixed[threadIdx.x] = 1;
    })",
                                  32, 128);
  ASSERT_EQ(kernel.error(), "");
  GuardedBuffer<float> out(std::vector<float>{0, 0, 0});
  ASSERT_EQ(kernel.launch({out.data()}, 3), "");
  EXPECT_THAT(out.values(), Each(testing::NanSensitiveFloatEq(NAN)));
}

TEST(Emulator, BarriersThatOthersDoNotReach) {
  EXPECT_THAT(
      errorsOf({"if (thread >= 48) return; __syncthreads();",
                "if (thread % 32 < 8) __syncwarp(); __syncthreads();",
                "if (thread < 4) __ballot_sync(~0u, 1); else __shfl_sync(~0u, 1, 0);",
                "if (thread != 31) __shfl_sync(~0u, 1, 0);",
                "if (thread < 31) ldmatrix_x4(fragment, shared);",
                "if (thread >= 32) __shfl_sync(0xffffu, 1, 0);"},
               64, 128),
      ElementsAre(
          "k: block 0: no thread can go on: 0-47 at __syncthreads, 48-63 ended",
          "k: block 0: no thread can go on: 0-7 at __syncwarp with mask 0xffffffff, "
          "8-31 at __syncthreads, 32-39 at __syncwarp with mask 0xffffffff, 40-63 at "
          "__syncthreads",
          "k: block 0: no thread can go on: 0-3 at a vote with mask 0xffffffff, 4-31 "
          "at a shuffle with mask 0xffffffff, 32-63 ended",
          "k: block 0: no thread can go on: 0-30 at a shuffle with mask 0xffffffff, "
          "31-63 ended",
          "k: block 0: no thread can go on: 0-30 at ldmatrix with mask 0xffffffff, "
          "31-63 ended",
          "k: thread 48 of block 0: at a shuffle with mask 0xffff, which does not "
          "name "
          "its own lane 16"));
}

TEST(Emulator, OutsideOfDynamicSharedMemory) {
  // Up to a multiple of 1024 writes are found after the block, past it at once.
  EXPECT_THAT(
      errorsOf({"shared[thread] = 1; out[thread] = shared[thread];",
                "shared[thread + 1] = 1;", "shared[thread - 1] = 1;",
                "out[thread] = shared[thread + 193];"},
               64, 256),
      ElementsAre(
          "", "k: block 0 wrote outside of its 256 bytes of dynamic shared memory",
          "k: block 0 wrote outside of its 256 bytes of dynamic shared memory",
          AllOf(HasSubstr("k: thread 63 of block 0: access to 0x"),
                HasSubstr(" where no memory is: byte 1024 of 256 of dynamic shared "
                          "memory"))));
}

TEST(Emulator, OutsideOfAnArgument) {
  EXPECT_THAT(
      errorsOf({"out[thread + 1] = 1;", "out[thread - 2000] = 1;"}, 64, 0),
      ElementsAre(AllOf(HasSubstr("k: thread 63 of block 0: access to 0x"),
                        HasSubstr(" where no memory is: byte 256 from the pointer of "
                                  "argument 0")),
                  HasSubstr("byte -8000 from the pointer of argument 0")));
}

TEST(Emulator, StackThatIsTooSmall) {
  EXPECT_THAT(
      errorsOf({"float big[1 << 16];\n"
                "for (int i = 0; i < 65536; ++i) big[i] = out[i % 64];\n"
                "out[thread] = big[thread * 7];"},
               64, 0),
      ElementsAre("k: thread 0 of block 0: needs more than 131072 bytes of stack"));
}

TEST(Emulator, UndefinedOperationsNameTheirLine) {
  EXPECT_THAT(
      errorsOf({"auto *v = (float4 *)(out + thread * 4 % 63);\nv->y = 1;",
                "__shared__ float s[60];\n\ns[thread] = 1;",
                "out[0] = 1 << (thread + 20);", "out[0] = thread * 40000000;",
                "out[0] = 8 / thread;", "__builtin_assume(thread < 40);",
                "__trap();"},
               64, 0),
      ElementsAre("k: thread 16 of block 0: k.cu:2: misaligned address",
                  "k: thread 60 of block 0: k.cu:3: index outside of the array",
                  "k: thread 12 of block 0: k.cu:1: shift by a wrong number of bits",
                  "k: thread 54 of block 0: k.cu:1: signed overflow of a product",
                  "k: thread 0 of block 0: k.cu:1: division by zero or overflow",
                  "k: thread 40 of block 0: k.cu:1: not so: thread < 40",
                  "k: thread 0 of block 0: k.cu:1: __trap"));
}

TEST(Emulator, AddressesOfCopiesAndMatrices) {
  EXPECT_THAT(
      errorsOf(
          {"cp_async_16(shared + 1, out);", "cp_async_16(shared + 512, out);",
           "cp_async_16(shared, out + 2);",
           "cp_async_16(shared, out + 64); cp_async_commit(); cp_async_wait<0>();",
           "ldmatrix_x4(fragment, out);"},
          32, 2048),
      ElementsAre(
          HasSubstr("cp.async of a shared address that is no multiple of 16"),
          HasSubstr(
              "cp.async of an address that is not in shared memory (byte 2048 of "
              "2048 of dynamic shared memory)"),
          HasSubstr("cp.async of a global address that is no multiple of 16"),
          HasSubstr("byte 256 from the pointer of argument 0"),
          HasSubstr("ldmatrix of an address that is not in shared memory")));
}

TEST(Emulator, LaunchesGoOnAfterAnError) {
  EmulatedKernel kernel = compile(R"(
    extern "C" __global__ void k(int *out, long long items) {
      if (items == 2 && threadIdx.x == 5) out = nullptr;
      __syncthreads();
      out[threadIdx.x] = 7;
    })",
                                  32);
  GuardedBuffer<int> out(32);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(kernel.launch({out.data()}, 2), HasSubstr("thread 5 of block 0"));
    EXPECT_EQ(kernel.launch({out.data()}, 1), "");
  }
  EXPECT_THAT(out.values(), Each(7));
}

TEST(Emulator, TextsItCannotRun) {
  EXPECT_THAT(
      compile("extern \"C\" __global__ void k(long long items) { no; }", 32).error(),
      AllOf(HasSubstr("k: the host compiler refuses it"), HasSubstr("k.cu:1:")));
  EXPECT_EQ(compile("extern \"C\" __global__ void k(int n, long long items) {}", 32)
                .error(),
            "k: parameter 0 is no pointer, long long or double");
  EXPECT_EQ(compile("extern \"C\" __global__ void k(float *x) {}", 32).error(),
            "k: the last parameter is not long long items");
  EXPECT_THAT(compile("__device__ void f() { asm(\"trap;\"); }", 32).error(),
              HasSubstr("line 1: asm outside"));
  EXPECT_EQ(
      compile("extern \"C\" __global__ void k(long long items) {}", 1025).error(),
      "k: a block of 1025 threads");
  EXPECT_EQ(compile("extern \"C\" __global__ void k(long long items) "
                    "{ __shared__ volatile float x[1000]; x[0] = 1; }",
                    32, 230000)
                .error(),
            "k: 234016 bytes of shared memory, more than 232448");
  cuda::KernelText maps{"k", "", {32, 0, 1, 0, {{}}}};
  EXPECT_EQ(EmulatedKernel::compile(maps).error(), "k: tensor maps are not emulated");
}

TEST(Emulator, ArgumentsMustMatchParameters) {
  EmulatedKernel kernel = compile(
      "extern \"C\" __global__ void k(float *x, double s, long long items) {}", 32);
  ASSERT_EQ(kernel.error(), "");
  float x = 0;
  EXPECT_EQ(kernel.launch({&x, 1.0}, 1), "");
  EXPECT_EQ(kernel.launch({&x, 1}, 1),
            "k: arguments are pii, parameters pdi (p: pointer, i: long long, d: "
            "double; the last is items)");
}

TEST(Emulator, ManyBarriersAreFast) {
  EmulatedKernel kernel = compile(R"(
    extern "C" __global__ void k(float *out, long long items) {
      __shared__ float s[256];
      float x = threadIdx.x;
      for (int i = 0; i < 50; ++i) {
        s[threadIdx.x] = x;
        __syncthreads();
        x += s[threadIdx.x ^ 64];
        __syncthreads();
      }
      out[threadIdx.x] = x;
    })",
                                  256);
  ASSERT_EQ(kernel.error(), "");
  GuardedBuffer<float> out(256);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(kernel.launch({out.data()}, 64), "");
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  RecordProperty("seconds", std::to_string(seconds.count()));
  EXPECT_LT(seconds.count(), 5);
}
