//===- executor_overhead.cpp - The executor's own time ----------*- C++ -*-===//
//
// Runs a plan shaped like a training step (layers in a loop; kernels with eight
// slices, four extents and a scalar each; a GEMM per four launches) on a device
// that does nothing, and prints nanoseconds per instruction. The executor must
// stay below 2000.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Solo.h"
#include "runtime/exec/Executor.h"
#include "test/unit/plan/PlanBuilder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace fsdpq;
using namespace fsdpq::test;

namespace {

class NullDevice final : public rt::Device {
public:
  uint64_t calls = 0;

  void requireTarget(std::string_view) const override {}
  rt::DeviceAddress allocate(uint64_t, std::string_view) override {
    return 4096;
  }
  void free(rt::DeviceAddress, uint64_t) override {}
  void upload(rt::DeviceAddress, const void *, uint64_t) override {}
  void download(void *, rt::DeviceAddress, uint64_t) override {}
  std::unique_ptr<rt::LoadedKernel>
  loadKernel(const rt::KernelImage &) override {
    return std::make_unique<rt::LoadedKernel>();
  }
  void launch(const rt::LoadedKernel &, const rt::LaunchArg *, uint32_t,
              int64_t, uint16_t) override {
    ++calls;
  }
  void gemm(const rt::GemmCall &, uint16_t) override { ++calls; }
  void copy(rt::DeviceAddress, rt::DeviceAddress, int64_t, uint16_t) override {
    ++calls;
  }
  void fill(rt::DeviceAddress, uint8_t, int64_t, uint16_t) override { ++calls; }
  void prepare(uint16_t, uint32_t) override {}
  void record(uint32_t, uint16_t) override { ++calls; }
  void wait(uint32_t, uint16_t) override { ++calls; }
  void hostCall(std::function<void()>, uint16_t) override { ++calls; }
  void synchronize() override {}
};

constexpr int64_t layers = 80;

PlanBuilder trainingStep() {
  PlanBuilder b;
  const uint32_t tokens = b.scalarI64("tokens", 4096);
  const uint32_t seed = b.scalarF64("scale");
  const uint32_t arena = b.arena("base", uint64_t(1) << 40);
  const uint64_t bytes = uint64_t(1) << 24;
  std::vector<uint64_t> offsets;
  for (int64_t layer = 0; layer < layers; ++layer)
    offsets.push_back(layer * bytes);
  const uint32_t weight = b.slice("w", arena, 0, bytes, 1, 0, offsets);
  const uint32_t residual = b.slice("r", arena, 0, bytes, 1, int64_t(bytes));
  const uint32_t x = b.slice("x", arena, 0, bytes);
  const uint32_t kernel = b.kernel("kernel");

  Body layer;
  for (int i = 0; i < 20; ++i) {
    if (i % 5 == 4) {
      plan::GemmT gemm;
      gemm.m = own(ofScalar(tokens));
      gemm.n = own(constant(256));
      gemm.k = own(constant(256));
      gemm.a = x;
      gemm.b = weight;
      gemm.c = residual;
      gemm.lda = gemm.ldb = gemm.ldc = 256;
      layer.push_back(instruction(std::move(gemm)));
      continue;
    }
    layer.push_back(launch(
        kernel, ofScalar(tokens, 1, 32), sliceArg(weight), sliceArg(residual),
        sliceArg(x), sliceArg(weight), sliceArg(residual), sliceArg(x),
        sliceArg(weight), sliceArg(x), extentArg(ofScalar(tokens)),
        extentArg(ofIndex(1)), extentArg(constant(7)),
        extentArg(ofScalar(tokens, 9, 32)), scalarArg(seed)));
  }
  b.function("step", body(loop(constant(layers), std::move(layer))));
  return b;
}

} // namespace

int main() {
  NullDevice device;
  const auto solo = rt::makeSolo();
  rt::Executor executor(trainingStep().load(), device, *solo);
  executor.setScalar(executor.scalar("tokens"), 3000);
  const rt::FunctionId step = executor.function("step");

  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const uint64_t before = device.calls;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i)
      executor.run(step);
    const std::chrono::duration<double, std::nano> elapsed =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count() /
                              static_cast<double>(device.calls - before));
  }
  std::printf("executor overhead: %.1f ns per instruction (limit 2000)\n",
              best);
  return best < 2000 ? 0 : 1;
}
