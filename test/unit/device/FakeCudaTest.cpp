// What CudaDevice asks of the driver and of cuBLASLt, seen by fakes of both.
#include "test/unit/device/fake_cuda/FakeCuda.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/LibraryVersions.h"
#include "runtime/support/Error.h"
#include "test/unit/device/CudaTestKernels.h"
#include "test/unit/device/DeviceConformance.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <map>
#include <thread>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// The fakes are found before anything else.
const int isSet = ::setenv("FSDPQ_CUDA_PATH", FSDPQ_FAKE_CUDA, 1);

fake::State &fakeCuda() {
  static fake::State &state = [&]() -> fake::State & {
    versionOf(CudaLibrary::Driver);
    void *library =
        ::dlopen(FSDPQ_FAKE_CUDA "/libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return *reinterpret_cast<fake::State *(*)()>(
        ::dlsym(library, "fsdpqFakeCuda"))();
  }();
  return state;
}

const std::vector<uint8_t> &keep(std::vector<uint8_t> code) {
  static std::deque<std::vector<uint8_t>> kept;
  return kept.emplace_back(std::move(code));
}

KernelImage imageOf(const char *symbol, const std::vector<uint8_t> &code,
                    const plan::LaunchShape *shape) {
  return {symbol,      symbol,      plan::KernelForm::CudaCubin,
          code.data(), code.size(), shape};
}

KernelImage knownKernel(const char *symbol) {
  static const plan::LaunchShape *shape = launchShape();
  const uint32_t arguments = std::string(symbol) == "count_visits" ? 1 : 4;
  return imageOf(symbol, keep(fake::makeCode(symbol, arguments)), shape);
}

using plan::DType;
INSTANTIATE_TEST_SUITE_P(FakeCuda, DeviceConformance,
                         testing::Values(DeviceUnderTest{
                             "fake",
                             [] { return std::make_unique<CudaDevice>(0); },
                             knownKernel,
                             {{DType::BF16, DType::BF16},
                              {DType::BF16, DType::F32},
                              {DType::F64, DType::F64}}}),
                         [](const auto &info) { return info.param.name; });

template <typename Action>
std::string errorOf(int id, const Action &action) {
  try {
    action();
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), id) << error.what();
    return error.what();
  }
  return "no error";
}

class FakeCuda : public testing::Test {
protected:
  void SetUp() override {
    fake::State &state = fakeCuda();
    std::lock_guard lock(state.mutex);
    state.launches.clear();
    state.maps.clear();
    state.products.clear();
    state.priorities.clear();
    state.heuristics = 0;
    state.failingKernel.clear();
    state.isBroken = false;
  }
  void TearDown() override {
    fake::State &state = fakeCuda();
    std::lock_guard lock(state.mutex);
    state.isBroken = false;
    state.failingKernel.clear();
    ::unsetenv("FSDPQ_SYNC_LAUNCH");
  }

  GemmCall product(CudaDevice &device, int64_t m = 4, float beta = 0) {
    constexpr uint64_t bytes = 1 << 16;
    GemmCall call{};
    call.dtype = call.outDtype = DType::F32;
    call.m = call.n = call.k = call.lda = call.ldb = call.ldc = 4;
    call.m = m;
    call.alpha = 1;
    call.beta = beta;
    call.a = device.allocate(bytes, "a");
    call.b = device.allocate(bytes, "b");
    call.c = device.allocate(bytes, "c");
    return call;
  }
};

} // namespace

TEST_F(FakeCuda, IsWhatIsUsed) {
  EXPECT_EQ(versionOf(CudaLibrary::Driver), "13.1");
  EXPECT_EQ(versionOf(CudaLibrary::CublasLt), "13.1.0");
  std::string why;
  const auto gpus = findGpus(why);
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[1].ordinal, 1);
  EXPECT_EQ(gpus[1].architecture, "sm_90a");
  EXPECT_EQ(gpus[1].name, "Fake H200");
}

TEST_F(FakeCuda, NothingIsLeftBehind) {
  {
    CudaDevice device(1);
    device.prepare(3, 7);
    auto kernel = device.loadKernel(knownKernel("count_visits"));
    const DeviceAddress memory = device.allocate(1000, "test");
    device.hostCall([] {}, 2);
    device.stamp([](auto) {}, 1);
    GemmCall call = product(device);
    call.k = 0;
    device.gemm(call, 0);
    device.synchronize();
    for (DeviceAddress each : {memory, call.a, call.b, call.c})
      device.free(each, 0);
  }
  fake::State &state = fakeCuda();
  EXPECT_EQ(state.bytesInUse, 0u);
  EXPECT_EQ(state.modules, 0);
  EXPECT_EQ(state.streams, 0);
  EXPECT_EQ(state.events, 0);
  EXPECT_EQ(state.contexts, 0);
}

TEST_F(FakeCuda, StreamsThatBringDataGoFirst) {
  CudaDevice device(0);
  device.prepare(3, 0);
  // The first is the device's own.
  EXPECT_THAT(fakeCuda().priorities, ElementsAre(-5, 0, -5, -5));
}

TEST_F(FakeCuda, TargetsAreArchitectures) {
  CudaDevice device(0);
  EXPECT_NO_THROW(device.requireTarget("sm_90a"));
  for (const char *other : {"sm_80", "sm_90", "x86-64 +avx2"})
    EXPECT_THAT(errorOf(4001, [&] { device.requireTarget(other); }),
                HasSubstr(std::string("made for \"") + other + "\""));
}

//===--- Launches -----------------------------------------------------------//

TEST_F(FakeCuda, ArgumentsAreFollowedByTheNumberOfItems) {
  CudaDevice device(0);
  auto kernel = device.loadKernel(
      imageOf("unknown", keep(fake::makeCode("unknown", 3)), launchShape(100)));
  const LaunchArg args[] = {LaunchArg::ofAddress(0x1000), LaunchArg::ofInteger(-2), LaunchArg::ofReal(0.5)};
  device.launch(*kernel, args, 3, 1000, 0);
  device.synchronize();
  ASSERT_EQ(fakeCuda().launches.size(), 1u);
  const fake::Launch &launch = fakeCuda().launches[0];
  EXPECT_EQ(launch.blocks, 8u); // 1000 items, 128 a block
  EXPECT_EQ(launch.threads, 128u);
  EXPECT_EQ(launch.sharedBytes, 100u);
  EXPECT_THAT(launch.values,
              ElementsAre(0x1000u, uint64_t(-2), 0x3fe0000000000000u, 1000u));
}

TEST_F(FakeCuda, BlocksAreAsManyAsTheProcessorsMayHave) {
  CudaDevice device(0);
  auto kernel = device.loadKernel(imageOf(
      "unknown", keep(fake::makeCode("unknown", 0)), launchShape(0, 2)));
  for (int64_t grid : {1, 128, 129, 1024, 1025, 1 << 20})
    device.launch(*kernel, nullptr, 0, grid, 0);
  std::vector<unsigned> blocks;
  for (const fake::Launch &launch : fakeCuda().launches)
    blocks.push_back(launch.blocks);
  EXPECT_THAT(blocks, ElementsAre(1, 1, 2, 8, 8, 8)); // 4 processors, 2 each
}

TEST_F(FakeCuda, OtherArgumentsThanTheCodesAreRefused) {
  CudaDevice device(0);
  auto kernel = device.loadKernel(knownKernel("count_visits"));
  const LaunchArg args[] = {LaunchArg::ofAddress(0x1000), LaunchArg::ofInteger(1)};
  EXPECT_THAT(errorOf(4008, [&] { device.launch(*kernel, args, 2, 1, 0); }),
              HasSubstr("kernel 'count_visits' takes 2 parameters"));
  EXPECT_TRUE(fakeCuda().launches.empty());
}

TEST_F(FakeCuda, TensorMapsReachToTheEndOfTheMemoryAndAreEncodedOnce) {
  CudaDevice device(0);
  const DeviceAddress memory = device.allocate(256 * 100, "rows");
  // Rows of 40 elements, 64 apart, 8 into the slice.
  auto kernel = device.loadKernel(
      imageOf("unknown", keep(fake::makeCode("unknown", 2, 2)),
              launchShape(0, 0,
                          {plan::TensorMap(1, 32, 16, 8, 40, 64),
                           plan::TensorMap(1, 64, 8, 0, 64, 64)})));
  LaunchArg args[] = {LaunchArg::ofInteger(3), LaunchArg::ofAddress(memory + 256)};
  device.launch(*kernel, args, 2, 1, 0);
  device.launch(*kernel, args, 2, 1, 0);
  ASSERT_EQ(fakeCuda().maps.size(), 2u);
  const fake::Map &map = fakeCuda().maps[0];
  EXPECT_EQ(map.address, memory + 256 + 16);
  // 25600 - 272 bytes: 197 rows of 128 bytes, and 80 bytes of one more.
  EXPECT_THAT(map.extents, ElementsAre(40u, 198u));
  EXPECT_THAT(map.pitches, ElementsAre(128u));
  EXPECT_THAT(map.box, ElementsAre(32u, 16u));
  EXPECT_THAT(fakeCuda().maps[1].extents, ElementsAre(64u, 198u));
  EXPECT_THAT(fakeCuda().launches[1].maps, ElementsAre(0u, 1u));

  args[1] = LaunchArg::ofAddress(memory);
  device.launch(*kernel, args, 2, 1, 0);
  EXPECT_THAT(fakeCuda().launches[2].maps, ElementsAre(2u, 3u));
  args[1] = LaunchArg::ofAddress(memory + 256);
  device.launch(*kernel, args, 2, 1, 0);
  EXPECT_THAT(fakeCuda().launches[3].maps, ElementsAre(0u, 1u));

  // Other memory may have another size.
  const DeviceAddress other = device.allocate(256, "other");
  device.launch(*kernel, args, 2, 1, 0);
  EXPECT_THAT(fakeCuda().launches[4].maps, ElementsAre(4u, 5u));
  device.free(other, 256);
  device.free(memory, 256 * 100);
}

TEST_F(FakeCuda, TensorMapsThatCannotBeAreRefused) {
  CudaDevice device(0);
  const auto launch = [&](const plan::TensorMap &map, const LaunchArg &arg) {
    auto kernel = device.loadKernel(
        imageOf("unknown", keep(fake::makeCode("unknown", 1, 1)),
                launchShape(0, 0, {map})));
    device.launch(*kernel, &arg, 1, 1, 0);
  };
  const DeviceAddress memory = device.allocate(256, "rows");
  EXPECT_THAT(errorOf(4008,
                      [&] {
                        launch({1, 8, 8, 0, 64, 64}, LaunchArg::ofAddress(memory));
                      }),
              HasSubstr("which is no slice"));
  EXPECT_THAT(errorOf(4008,
                      [&] {
                        launch({0, 8, 8, 0, 64, 64}, LaunchArg::ofInteger(1));
                      }),
              HasSubstr("which is no slice"));
  EXPECT_THAT(errorOf(4008,
                      [&] {
                        launch({0, 8, 8, 0, 64, 63}, LaunchArg::ofAddress(memory));
                      }),
              HasSubstr("64 columns with pitch 63"));
  EXPECT_THAT(errorOf(4008,
                      [&] {
                        launch({0, 8, 8, 100, 64, 64}, LaunchArg::ofAddress(memory));
                      }),
              HasSubstr("0 rows"));
  EXPECT_THAT(errorOf(4008,
                      [&] {
                        launch({0, 8, 8, 0, 60, 60}, LaunchArg::ofAddress(memory));
                      }),
              HasSubstr("rows of pitch 60"));
  device.free(memory, 256);
}

TEST_F(FakeCuda, CodeThatCannotBeLoadedIsRefused) {
  CudaDevice device(0);
  const auto load = [&](const char *symbol, std::vector<uint8_t> code,
                        const plan::LaunchShape *shape) {
    return errorOf(4003, [&] {
      device.loadKernel(imageOf(symbol, keep(std::move(code)), shape));
    });
  };
  const auto *shape = launchShape();
  EXPECT_THAT(
      load("f", fake::makeCode("f", 1, 0, 80), shape),
      HasSubstr("made for another GPU than this one, whose architecture "
                "is sm_90a"));
  EXPECT_THAT(load("f", fake::makeCode("g", 1), shape),
              HasSubstr("kernel 'f' has no entry 'f'"));
  EXPECT_THAT(load("f", {1, 2, 3}, shape), HasSubstr("no cubin, or cut off"));
  auto longer = fake::makeCode("f", 1);
  longer[0x28] = 0xff; // where its sections begin
  EXPECT_NO_THROW(
      device.loadKernel(imageOf("f", keep(fake::makeCode("f", 1)), shape)));
  longer[0x3a] = 64, longer[0x3c] = 4;
  EXPECT_THAT(load("f", longer, shape), HasSubstr("no cubin, or cut off"));
  EXPECT_THAT(load("f", fake::makeCode("f", 1), nullptr),
              HasSubstr("does not say how it is started"));
  EXPECT_THAT(load("f", fake::makeCode("f", 1), launchShape(300 << 10)),
              HasSubstr("needs 307200 bytes of shared memory"));
  KernelImage cpu = knownKernel("count_visits");
  cpu.form = plan::KernelForm::CpuObject;
  EXPECT_THAT(errorOf(4003, [&] { device.loadKernel(cpu); }),
              HasSubstr("is not a cubin"));
  EXPECT_EQ(fakeCuda().modules, 0);
}

//===--- Memory and failures ------------------------------------------------//

TEST_F(FakeCuda, MemoryThatDoesNotFitIsCounted) {
  CudaDevice device(0);
  EXPECT_EQ(device.info().freeBytes, uint64_t(8) << 30);
  const std::string message =
      errorOf(4002, [&] { device.allocate(uint64_t(9) << 30, "arena base"); });
  EXPECT_THAT(message, HasSubstr("9663676416 bytes of arena base"));
  EXPECT_THAT(message,
              HasSubstr("8589934592 of its 8589934592 bytes are free"));
  const DeviceAddress memory = device.allocate(1, "test");
  EXPECT_EQ(device.usedBytes(), 256u);
  device.free(memory, 1);
}

TEST_F(FakeCuda, AFailureOfTheGpuEndsEverything) {
  fakeCuda().failingKernel = "bad";
  CudaDevice device(0);
  auto kernel = device.loadKernel(
      imageOf("bad", keep(fake::makeCode("bad", 0)), launchShape()));
  device.launch(*kernel, nullptr, 0, 1, 0);
  const std::string message = errorOf(4050, [&] { device.synchronize(); });
  EXPECT_THAT(message, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_THAT(message, HasSubstr("FSDPQ_SYNC_LAUNCH=1"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(errorOf(4050, [&] { device.launch(*kernel, nullptr, 0, 1, 0); }),
              message);
    EXPECT_EQ(errorOf(4050, [&] { device.synchronize(); }), message);
  }
}

TEST_F(FakeCuda, OnDemandTheKernelThatFailedIsNamed) {
  ::setenv("FSDPQ_SYNC_LAUNCH", "1", 1);
  fakeCuda().failingKernel = "bad";
  CudaDevice device(0);
  auto good = device.loadKernel(
      imageOf("good", keep(fake::makeCode("good", 0)), launchShape()));
  auto bad = device.loadKernel(
      imageOf("bad", keep(fake::makeCode("bad", 0)), launchShape()));
  device.launch(*good, nullptr, 0, 1, 0);
  EXPECT_THAT(errorOf(4050, [&] { device.launch(*bad, nullptr, 0, 1, 0); }),
              HasSubstr("kernel 'bad' failed on the GPU"));
  EXPECT_THAT(errorOf(4050, [&] { device.launch(*good, nullptr, 0, 1, 0); }),
              HasSubstr("kernel 'bad' failed on the GPU"));
}

TEST_F(FakeCuda, OthersMayEndItsWork) {
  CudaDevice device(0);
  device.prepare(2, 0);
  bool dropped = true;
  std::jthread other([&] {
    device.fail(std::make_exception_ptr(
        Error(7001, ExitCode::PeerFailure, "a rank is gone")));
  });
  other.join();
  EXPECT_THAT(
      errorOf(7001, [&] { device.hostCall([&] { dropped = false; }, 1); }),
      HasSubstr("a rank is gone"));
  EXPECT_TRUE(dropped);
}

//===--- GEMM ---------------------------------------------------------------//

TEST_F(FakeCuda, AlgorithmsAreAskedForOncePerShape) {
  CudaDevice device(0);
  const GemmCall call = product(device);
  for (int i = 0; i < 3; ++i)
    device.gemm(call, 0);
  EXPECT_EQ(fakeCuda().heuristics, 1);
  EXPECT_EQ(fakeCuda().products.back().algorithm, 1);
  GemmCall other = call;
  other.beta = 1;
  device.gemm(other, 0);
  EXPECT_EQ(fakeCuda().heuristics, 2);
  other.beta = 0.5f; // C is read all the same
  device.gemm(other, 0);
  EXPECT_EQ(fakeCuda().heuristics, 2);
  other = call;
  other.m = 3;
  device.gemm(other, 0);
  EXPECT_EQ(fakeCuda().heuristics, 3);
  other = call;
  other.a += 16;
  device.gemm(other, 0);
  EXPECT_EQ(fakeCuda().heuristics, 4);
  EXPECT_EQ(fakeCuda().preferences["alignment B"], 16u); // the library's B is A
  EXPECT_EQ(fakeCuda().preferences["alignment A"], 256u);
  // All schemes but the one that adds in place.
  EXPECT_EQ(fakeCuda().preferences["reduction"], 6u);
  EXPECT_EQ(fakeCuda().preferences["workspace"], 0u);
  device.synchronize();
}

TEST_F(FakeCuda, TheWorkspaceIsTheCalls) {
  CudaDevice device(0);
  GemmCall call = product(device);
  device.gemm(call, 0);
  call.workspace = device.allocate(1024, "workspace");
  call.workspaceBytes = 1024;
  device.gemm(call, 0);
  ASSERT_EQ(fakeCuda().products.size(), 2u);
  EXPECT_EQ(fakeCuda().products[0].workspace, nullptr);
  EXPECT_EQ(fakeCuda().products[0].workspaceBytes, 0u);
  EXPECT_EQ(fakeCuda().products[1].workspace,
            reinterpret_cast<void *>(call.workspace));
  EXPECT_EQ(fakeCuda().products[1].workspaceBytes, 1024u);
  EXPECT_EQ(fakeCuda().preferences["workspace"], 1024u);
  device.synchronize();
}

TEST_F(FakeCuda, OtherTypesAreNotSupported) {
  CudaDevice device(0);
  GemmCall call = product(device);
  call.outDtype = DType::BF16;
  EXPECT_THAT(errorOf(4004, [&] { device.gemm(call, 0); }),
              HasSubstr("no GEMM of F32 that gives BF16"));
}
