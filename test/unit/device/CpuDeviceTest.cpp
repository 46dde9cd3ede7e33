#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/support/Error.h"
#include "test/unit/device/DeviceConformance.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <limits>
#include <random>
#include <thread>

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

static DeviceUnderTest cpu(const std::string &name,
                           const CpuDeviceOptions &options) {
  return {name, [=] { return std::make_unique<CpuDevice>(options); },
          [](const char *symbol) { return image(symbol, testObject()); }};
}

/// Streams that are now and then late, to show what is not ordered.
static StreamDelays delays(uint64_t seed) {
  return {seed, std::chrono::microseconds(500)};
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, DeviceConformance,
    testing::Values(cpu("threads1", {1, false, {}}),
                    cpu("threads2", {2, false, {}}),
                    cpu("threads5", {5, false, {}}),
                    cpu("deterministic", {3, true, {}}),
                    cpu("delayed", {1, false, delays(1)}),
                    cpu("delayed_deterministic", {2, true, delays(2)})),
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
  using plan::DType;
  for (const auto &[type, outType] : {std::pair(DType::F64, DType::F64),
                                      std::pair(DType::F32, DType::BF16)})
    try {
      GemmCall call{};
      call.dtype = type;
      call.outDtype = outType;
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
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer leaves no such range of addresses";
#endif
  CpuDevice device(1);
  const uint64_t bytes = uint64_t(1) << 40; // more than the machine has
  DeviceAddress address = device.allocate(bytes, "test");
  device.fill(address + bytes - 1, 1, 1, 0);
  device.free(address, bytes);
}

//===--- Threads ------------------------------------------------------------//

namespace {

/// One product with its operands, made of random numbers, whose rows are longer
/// than what is multiplied.
struct Product {
  Product(int64_t m, int64_t n, int64_t k, bool transA, bool transB, float beta)
      : lda((transA ? m : k) + 3), ldb((transB ? k : n) + 1), ldc(n + 2),
        a((transA ? k : m) * lda), b((transB ? n : k) * ldb), c(m * ldc) {
    std::mt19937 random(static_cast<unsigned>(m * 7 + n * 5 + k));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::vector<float> *matrix : {&a, &b, &c})
      for (float &value : *matrix)
        value = uniform(random);
    call = {};
    call.dtype = call.outDtype = plan::DType::F32;
    call.transA = transA;
    call.transB = transB;
    call.m = m;
    call.n = n;
    call.k = k;
    call.alpha = 1;
    call.beta = beta;
    call.a = address(a);
    call.b = address(b);
    call.lda = lda;
    call.ldb = ldb;
    call.ldc = ldc;
  }

  /// The largest error relative to the sum of the terms' magnitudes, infinite
  /// where what lies between the rows has changed.
  double errorOf(const std::vector<float> &result) const {
    double largest = 0;
    std::vector<double> sums(call.n), magnitudes(call.n);
    for (int64_t i = 0; i < call.m; ++i) {
      std::fill(sums.begin(), sums.end(), 0);
      std::fill(magnitudes.begin(), magnitudes.end(), 0);
      for (int64_t l = 0; l < call.k; ++l)
        for (int64_t j = 0; j < call.n; ++j) {
          const double term = double(call.transA ? a[l * lda + i]
                                                 : a[i * lda + l]) *
                              (call.transB ? b[j * ldb + l] : b[l * ldb + j]);
          sums[j] += term;
          magnitudes[j] += std::abs(term);
        }
      for (int64_t j = 0; j < call.n; ++j) {
        const double before = double(call.beta) * c[i * ldc + j];
        largest = std::max(largest,
                           std::abs(result[i * ldc + j] - before - sums[j]) /
                               (magnitudes[j] + std::abs(before)));
      }
      for (int64_t j = call.n; j < ldc; ++j)
        if (result[i * ldc + j] != c[i * ldc + j])
          return std::numeric_limits<double>::infinity();
    }
    return largest;
  }

  std::vector<float> on(CpuDevice &device, uint16_t stream = 0) const {
    std::vector<float> result = c;
    GemmCall own = call;
    own.c = address(result);
    device.gemm(own, stream);
    device.synchronize();
    return result;
  }

  static DeviceAddress address(const std::vector<float> &values) {
    return reinterpret_cast<DeviceAddress>(values.data());
  }

  int64_t lda, ldb, ldc;
  std::vector<float> a, b, c;
  GemmCall call;
};

bool sameBits(const std::vector<float> &x, const std::vector<float> &y) {
  return x.size() == y.size() &&
         std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

} // namespace

TEST(CpuDevice, DeterministicGemmDoesNotDependOnThreads) {
  std::vector<std::unique_ptr<CpuDevice>> devices;
  for (unsigned threads : {1, 2, 3, 4, 7})
    devices.push_back(std::make_unique<CpuDevice>(
        CpuDeviceOptions{threads, true, {}}));
  devices.front()->prepare(2, 0);
  const struct {
    int64_t m, n, k;
  } shapes[] = {{1, 1, 1},      {1, 1000, 300},  {63, 65, 700},
                {100, 100, 50}, {2000, 8, 33},   {8, 2000, 500},
                {200, 3, 5000}, {16, 16, 20000}, {1100, 192, 4},
                {127, 1, 64},   {1, 129, 1},     {128, 64, 64},
                {513, 511, 257}, {129, 1500, 64}};
  for (const auto &[m, n, k] : shapes)
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (float beta : {0.f, 1.f}) {
          const Product product(m, n, k, transA, transB, beta);
          const std::vector<float> expected = product.on(*devices.front());
          EXPECT_LT(product.errorOf(expected), 1e-6)
              << m << "x" << n << "x" << k << " transA " << transA
              << " transB " << transB << " beta " << beta;
          for (const auto &device : devices)
            EXPECT_TRUE(sameBits(product.on(*device), expected))
                << m << "x" << n << "x" << k << " transA " << transA
                << " transB " << transB << " beta " << beta << " on "
                << device->threads() << " threads";
          EXPECT_TRUE(sameBits(product.on(*devices.front(), 1), expected))
              << "on another stream";
        }
}

// Ranks may be threads of one process, each with a device of its own.
TEST(CpuDevice, DevicesOfSeveralThreadsDoNotMeet) {
  const Product product(300, 200, 150, false, true, 0);
  CpuDevice reference(CpuDeviceOptions{1, true, {}});
  const std::vector<float> expected = product.on(reference);
  std::vector<int> wrong(4);
  std::vector<std::jthread> ranks;
  for (unsigned rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&, rank] {
      CpuDevice device(CpuDeviceOptions{1 + rank % 3, true, delays(rank)});
      device.prepare(2, 1);
      auto kernel = device.loadKernel(image("count_visits", testObject()));
      for (int i = 0; i < 20; ++i) {
        std::vector<int32_t> visits(1000);
        LaunchArg arg;
        arg.kind = LaunchArg::Kind::Address;
        arg.address = reinterpret_cast<DeviceAddress>(visits.data());
        device.launch(*kernel, &arg, 1, 1000, 1);
        wrong[rank] += !sameBits(product.on(device), expected);
        wrong[rank] += visits != std::vector<int32_t>(1000, 1);
      }
    });
  ranks.clear();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}
