// Plans that compute something, on the CPU.
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/exec/Executor.h"
#include "runtime/support/Error.h"
#include "runtime/support/MappedFile.h"
#include "test/unit/exec/Alone.h"
#include "test/unit/plan/PlanBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;

static std::vector<uint8_t> testObject() {
  MappedFile file(FSDPQ_TEST_KERNELS);
  return {file.data(), file.data() + file.size()};
}

// h = x; for each layer: t = h * w[layer]'; h = lr * t + layer. Three layers
// through a table, two buffers in turn, a GEMM, a kernel, copies and ports.
TEST(ExecutorOnCpu, LayersOfALoop) {
  constexpr int64_t width = 4, capacity = 64, layers = 3;
  PlanBuilder b;
  const uint32_t tokens = b.scalarI64("tokens", capacity);
  const uint32_t rate = b.scalarF64("lr");
  const uint32_t base = b.arena("base", 4096), step = b.arena("step", 4096);
  const uint64_t bytes = capacity * width * sizeof(float);
  const uint32_t weight = b.slice("w", base, 0, width * width * sizeof(float),
                                  1, 0, {512, 0, 1024});
  const uint32_t x = b.slice("x", step, 0, bytes);
  const uint32_t h = b.slice("h", step, bytes, bytes, 1, 0, {0, bytes, 0});
  const uint32_t t = b.slice("t", step, 3 * bytes, bytes);
  const uint32_t next =
      b.slice("next", step, bytes, bytes, 1, 0, {bytes, 0, bytes});
  const uint32_t first = b.slice("first", step, bytes, bytes);
  const uint32_t last = b.slice("last", step, 2 * bytes, bytes);
  const uint32_t kernel = b.kernel("scale_shift", testObject());

  plan::GemmT gemm;
  gemm.m = own(ofScalar(tokens));
  gemm.n = own(constant(width));
  gemm.k = own(constant(width));
  gemm.alpha = 1;
  gemm.trans_b = true;
  gemm.a = h;
  gemm.b = weight;
  gemm.c = t;
  gemm.lda = gemm.ldb = gemm.ldc = width;
  b.function("forward",
             body(copy(first, x, ofScalar(tokens, width * sizeof(float))),
                  loop(constant(layers),
                       body(instruction(std::move(gemm)),
                            launch(kernel, ofScalar(tokens, width), sliceArg(t),
                                   sliceArg(next), extentArg(ofIndex(1)),
                                   scalarArg(rate))))));
  const uint32_t all = capacity * width;
  b.input("x", x, constant(all));
  b.output("y", last, constant(all));

  CpuDevice device(2);
  Executor executor(b.load(), device, alone());
  constexpr int64_t rows = 37;
  std::vector<float> values(rows * width);
  std::iota(values.begin(), values.end(), -20.f);
  executor.writeInput(executor.input("x"), values.data(),
                      values.size() * sizeof(float));
  std::vector<std::vector<float>> weights(layers);
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (int64_t i = 0; i < width * width; ++i)
      weights[layer].push_back(static_cast<float>((i * 5 + layer) % 7 - 3));
    executor.writeSlice(weight, layer, weights[layer].data(),
                        width * width * sizeof(float));
  }
  executor.setScalar(executor.scalar("tokens"), rows);
  executor.setScalar(executor.scalar("lr"), 0.5);
  executor.run(executor.function("forward"));

  // All values are small multiples of 1/8: exact in f32 in any order.
  std::vector<float> expected = values;
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::vector<float> product(rows * width, 0.f);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < width; ++j) {
        for (int64_t k = 0; k < width; ++k)
          product[i * width + j] +=
              expected[i * width + k] * weights[layer][j * width + k];
        product[i * width + j] =
            0.5f * product[i * width + j] + static_cast<float>(layer);
      }
    expected = product;
  }
  std::vector<float> result(rows * width + 1);
  executor.readOutput(executor.output("y"), result.data(),
                      result.size() * sizeof(float));
  expected.push_back(0); // beyond the tokens nothing is written
  EXPECT_EQ(result, expected);
}

TEST(ExecutorOnCpu, EmptyStepsDoNothing) {
  PlanBuilder b;
  const uint32_t tokens = b.scalarI64("tokens", 8);
  const uint32_t slice = b.slice("x", b.arena("step", 64), 0, 64);
  const uint32_t kernel = b.kernel("count_visits", testObject());
  b.function("f",
             body(launch(kernel, ofScalar(tokens), sliceArg(slice)),
                  fill(slice, 9, ofScalar(tokens)),
                  loop(ofScalar(tokens), body(fill(slice, 9, constant(64))))));
  CpuDevice device(2);
  Executor executor(b.load(), device, alone());
  executor.run(executor.function("f"));
  std::vector<uint8_t> bytes(64, 1);
  executor.readSlice(slice, 0, bytes.data(), bytes.size());
  EXPECT_EQ(bytes, std::vector<uint8_t>(64, 0));

  executor.setScalar(executor.scalar("tokens"), 4);
  executor.run(executor.function("f"));
  executor.readSlice(slice, 0, bytes.data(), bytes.size());
  EXPECT_EQ(bytes, std::vector<uint8_t>(64, 9));
}

TEST(ExecutorOnCpu, ThreadsDoNotChangeTheResult) {
  for (unsigned threads : {1u, 2u, 3u}) {
    PlanBuilder b;
    const uint32_t slice = b.slice("visits", b.arena("step", 4096), 0, 4000);
    b.function("f",
               body(loop(constant(5),
                         body(launch(b.kernel("count_visits", testObject()),
                                     constant(999), sliceArg(slice))))));
    CpuDevice device(threads);
    Executor executor(b.load(), device, alone());
    executor.run(executor.function("f"));
    std::vector<int32_t> visits(1000);
    executor.readSlice(slice, 0, visits.data(), 4000);
    std::vector<int32_t> expected(999, 5);
    expected.push_back(0);
    EXPECT_EQ(visits, expected) << threads << " threads";
  }
}

TEST(ExecutorOnCpu, BrokenKernelsAreNamedAtPrepare) {
  PlanBuilder b;
  b.kernel("rms_norm", {1, 2, 3});
  CpuDevice device(1);
  try {
    Executor executor(b.load(), device, alone());
    FAIL() << "prepared";
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), 4003);
    EXPECT_THAT(error.what(), testing::HasSubstr("kernel 'rms_norm'"));
  }
}
