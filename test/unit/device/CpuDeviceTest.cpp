#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/support/Error.h"
#include "test/unit/device/DeviceConformance.h"

#include <cmath>
#include <gmock/gmock.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::HasSubstr;

static const std::vector<uint8_t> &testObject() {
  static const std::vector<uint8_t> bytes = readBytes(FSDPQ_TEST_KERNELS);
  return bytes;
}

static KernelImage image(const char *symbol,
                         const std::vector<uint8_t> &object) {
  return {symbol, symbol, plan::KernelForm::CpuObject, object.data(),
          object.size()};
}

static DeviceUnderTest cpu(unsigned threads) {
  return {"threads" + std::to_string(threads),
          [=] { return std::make_unique<CpuDevice>(threads); },
          [](const char *symbol) { return image(symbol, testObject()); }};
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformance,
                         testing::Values(cpu(1), cpu(2), cpu(5)),
                         [](const auto &info) { return info.param.name; });

/// The message of the Error with `id` that loading must end with.
static std::string loadError(const KernelImage &image, int id) {
  CpuDevice device(1);
  try {
    device.loadKernel(image);
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), id);
    return error.what();
  }
  return "loaded";
}

TEST(CpuDevice, KernelsUseLibmOfTheProcess) {
  CpuDevice device(2);
  auto kernel = device.loadKernel(image("uses_libm", testObject()));
  std::vector<float> x{-1, 0, 0.5f, 3}, y(4), z(4);
  LaunchArg args[3];
  int number = 0;
  for (std::vector<float> *array : {&x, &y, &z}) {
    args[number].kind = LaunchArg::Kind::Address;
    args[number++].address = reinterpret_cast<DeviceAddress>(array->data());
  }
  device.launch(*kernel, args, 3, 4, 0);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(y[i], std::exp(x[i]));
  EXPECT_EQ(z, x);
}

TEST(CpuDevice, EqualSymbolsDoNotMeet) {
  CpuDevice device(1);
  auto first = device.loadKernel(image("count_visits", testObject()));
  auto second = device.loadKernel(image("count_visits", testObject()));
  first.reset(); // The second one's code stays.
  int32_t visits = 0;
  LaunchArg arg;
  arg.kind = LaunchArg::Kind::Address;
  arg.address = reinterpret_cast<DeviceAddress>(&visits);
  device.launch(*second, &arg, 1, 1, 0);
  EXPECT_EQ(visits, 1);
}

TEST(CpuDevice, UnresolvedSymbolsAreNamed) {
  const std::vector<uint8_t> object = readBytes(FSDPQ_TEST_UNRESOLVED_KERNEL);
  std::string message = loadError(image("unresolved", object), 4003);
  EXPECT_THAT(message, HasSubstr("kernel 'unresolved'"));
  EXPECT_THAT(message, HasSubstr("fsdpq_test_defined_nowhere"));
}

TEST(CpuDevice, MissingEntryIsNamed) {
  EXPECT_THAT(loadError(image("no_such_entry", testObject()), 4003),
              HasSubstr("no_such_entry"));
}

TEST(CpuDevice, BrokenObjectsAreRefused) {
  EXPECT_THAT(loadError(image("count_visits", {1, 2, 3}), 4003),
              HasSubstr("cannot be loaded"));
  std::vector<uint8_t> half(testObject().begin(),
                            testObject().begin() + testObject().size() / 2);
  EXPECT_THAT(loadError(image("count_visits", half), 4003),
              HasSubstr("cannot be loaded"));
}

TEST(CpuDevice, AFailedLoadLeavesTheDeviceUsable) {
  CpuDevice device(1);
  EXPECT_THROW(device.loadKernel(image("no_such_entry", testObject())), Error);
  EXPECT_NE(device.loadKernel(image("count_visits", testObject())), nullptr);
}

TEST(CpuDevice, OtherGemmTypesAreNotSupported) {
  CpuDevice device(1);
  for (plan::DType type : {plan::DType::F64, plan::DType::BF16})
    try {
      GemmCall call{};
      call.dtype = type;
      device.gemm(call, 0);
      FAIL() << "executed";
    } catch (const Error &error) {
      EXPECT_EQ(error.id(), 4004);
      EXPECT_THAT(error.what(), HasSubstr(plan::EnumNameDType(type)));
    }
}

TEST(CpuDevice, TargetsNeedTheirFeatures) {
  CpuDevice device(1);
  EXPECT_NO_THROW(device.requireTarget("generic"));
  EXPECT_NO_THROW(device.requireTarget("x86-64 +sse2,-avx,+tuning-word"));
  // AMD's bulldozer extensions beside Intel's key locker: no CPU has both.
  EXPECT_THROW(device.requireTarget("x86-64 +sse2 +sse4a,+tbm,+xop,+fma4,+kl"),
               Error);
}

TEST(CpuDevice, UntouchedMemoryCostsNothing) {
  CpuDevice device(1);
  const uint64_t bytes = uint64_t(1) << 40; // more than the machine has
  DeviceAddress address = device.allocate(bytes, "test");
  device.fill(address + bytes - 1, 1, 1, 0);
  device.free(address, bytes);
}
