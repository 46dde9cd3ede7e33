#include "test/unit/device/DeviceConformance.h"
#include "runtime/device/DeviceBuffer.h"
#include "runtime/support/Error.h"
#include "runtime/support/MappedFile.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <future>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

using namespace fsdpq;
using namespace fsdpq::rt;

namespace fsdpq::test {

std::vector<uint8_t> readBytes(const std::string &path) {
  MappedFile file(path);
  return {file.data(), file.data() + file.size()};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);

namespace {

/// An array of T on a device.
template <typename T>
class Array {
public:
  Array(Device &device, const std::vector<T> &values)
      : device(device), size(values.size()),
        buffer(device, values.size() * sizeof(T), "test") {
    device.upload(buffer.address(), values.data(), size * sizeof(T));
  }

  DeviceAddress at(size_t index = 0) const {
    return buffer.address() + index * sizeof(T);
  }

  std::vector<T> values() const {
    std::vector<T> result(size);
    device.download(result.data(), buffer.address(), size * sizeof(T));
    return result;
  }

private:
  Device &device;
  size_t size;
  DeviceBuffer buffer;
};

std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = uniform(random);
  return values;
}

} // namespace

//===--- Memory -------------------------------------------------------------//

TEST_P(DeviceConformance, MemoryIsAlignedAndZero) {
  auto device = GetParam().make();
  for (uint64_t bytes : {uint64_t(0), uint64_t(1), uint64_t(70000)}) {
    DeviceBuffer buffer(*device, bytes, "test");
    EXPECT_EQ(buffer.address() % 256, 0u);
    std::vector<uint8_t> content(bytes, 1);
    device->download(content.data(), buffer.address(), bytes);
    EXPECT_EQ(content, std::vector<uint8_t>(bytes, 0));
  }
}

TEST_P(DeviceConformance, ImpossibleMemoryDoesNotFit) {
  auto device = GetParam().make();
  try {
    DeviceBuffer(*device, uint64_t(1) << 60, "arena base");
    FAIL() << "allocated";
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), 4002);
    EXPECT_EQ(error.exitCode(), ExitCode::DoesNotFit);
    EXPECT_NE(std::string(error.what()).find("arena base"), std::string::npos);
  }
}

TEST_P(DeviceConformance, CopiesMoveExactlyTheirBytes) {
  auto device = GetParam().make();
  for (size_t bytes : {size_t(0), size_t(1), size_t(63), size_t(4097),
                       (size_t(5) << 20) + 3}) {
    std::vector<uint8_t> source(bytes + 2);
    for (size_t i = 0; i < source.size(); ++i)
      source[i] = static_cast<uint8_t>(i * 7 + 1);
    std::vector<uint8_t> expected(bytes + 2, 0xee);
    std::copy_n(source.begin() + 1, bytes, expected.begin() + 1);

    Array<uint8_t> from(*device, source);
    Array<uint8_t> to(*device, std::vector<uint8_t>(bytes + 2, 0xee));
    device->copy(to.at(1), from.at(1), static_cast<int64_t>(bytes), 0);
    device->synchronize();
    EXPECT_EQ(to.values(), expected) << bytes;
  }
}

TEST_P(DeviceConformance, FillsSetExactlyTheirBytes) {
  auto device = GetParam().make();
  for (size_t bytes : {size_t(0), size_t(1), size_t(4095), size_t(5) << 20}) {
    std::vector<uint8_t> expected(1, 0xee);
    expected.insert(expected.end(), bytes, 0x5a);
    expected.push_back(0xee);
    Array<uint8_t> to(*device, std::vector<uint8_t>(bytes + 2, 0xee));
    device->fill(to.at(1), 0x5a, static_cast<int64_t>(bytes), 0);
    EXPECT_EQ(to.values(), expected) << bytes;
  }
}

TEST_P(DeviceConformance, NegativeSizesDoNothing) {
  auto device = GetParam().make();
  const std::vector<uint8_t> ones(8, 1);
  Array<uint8_t> memory(*device, ones);
  device->fill(memory.at(), 9, -4, 0);
  device->copy(memory.at(), memory.at(4), -4, 0);
  EXPECT_EQ(memory.values(), ones);
}

//===--- Kernels ------------------------------------------------------------//

TEST_P(DeviceConformance, EachItemIsExecutedOnce) {
  auto device = GetParam().make();
  auto kernel = device->loadKernel(GetParam().kernel("count_visits"));
  for (int64_t grid : {-1, 0, 1, 2, 3, 7, 64, 1000, 100001}) {
    const size_t items = static_cast<size_t>(std::max<int64_t>(grid, 0));
    Array<int32_t> visits(*device, std::vector<int32_t>(items + 1, 0));
    const LaunchArg args[] = {LaunchArg::ofAddress(visits.at())};
    device->launch(*kernel, args, 1, grid, 0);
    device->launch(*kernel, args, 1, grid, 0);
    std::vector<int32_t> expected(items, 2);
    expected.push_back(0);
    EXPECT_EQ(visits.values(), expected) << "grid " << grid;
  }
}

TEST_P(DeviceConformance, ArgumentsAreReadBeforeTheReturn) {
  auto device = GetParam().make();
  auto kernel = device->loadKernel(GetParam().kernel("scale_shift"));
  std::vector<float> input(300);
  std::iota(input.begin(), input.end(), 0.f);
  Array<float> x(*device, input), y(*device, std::vector<float>(300));
  LaunchArg args[] = {LaunchArg::ofAddress(x.at()), LaunchArg::ofAddress(y.at()), LaunchArg::ofInteger(-3), LaunchArg::ofReal(0.5)};
  device->launch(*kernel, args, 4, 300, 0);
  args[2] = LaunchArg::ofInteger(1000);
  std::vector<float> expected;
  for (float value : input)
    expected.push_back(0.5f * value - 3);
  EXPECT_EQ(y.values(), expected);
}

TEST_P(DeviceConformance, WorkOfAStreamIsInOrder) {
  auto device = GetParam().make();
  auto kernel = device->loadKernel(GetParam().kernel("scale_shift"));
  Array<float> x(*device, std::vector<float>(4096));
  const LaunchArg args[] = {LaunchArg::ofAddress(x.at()), LaunchArg::ofAddress(x.at()), LaunchArg::ofInteger(1),
                            LaunchArg::ofReal(2)};
  device->fill(x.at(), 0, 4096 * sizeof(float), 0);
  for (int i = 0; i < 10; ++i)
    device->launch(*kernel, args, 4, 4096, 0);
  // x = 2x + 1, ten times from 0.
  EXPECT_EQ(x.values(), std::vector<float>(4096, 1023));
}

//===--- GEMM ---------------------------------------------------------------//

namespace {

struct Shape {
  int64_t m, n, k;
};

/// How a GEMM's elements are stored, and how exact a product of them is.
struct F32 {
  using Type = float;
  static constexpr double tolerance = 1e-6;
  static double load(Type value) { return value; }
  static Type store(double value) { return static_cast<Type>(value); }
};
struct F64 {
  using Type = double;
  static constexpr double tolerance = 1e-14;
  static double load(Type value) { return value; }
  static Type store(double value) { return value; }
};
struct BF16 {
  using Type = uint16_t;
  static constexpr double tolerance = 1. / 256; // half a step of the result
  static double load(Type value) {
    return std::bit_cast<float>(uint32_t(value) << 16);
  }
  /// Towards zero, where random numbers are made.
  static Type store(double value) {
    return static_cast<Type>(
        std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
  }
};

template <typename T>
std::vector<typename T::Type> randomValues(size_t count, unsigned seed) {
  std::vector<typename T::Type> values;
  for (float value : randomFloats(count, seed))
    values.push_back(T::store(value));
  return values;
}

/// Runs one GEMM with padded pitches and compares with a product in f64.
template <typename In = F32, typename Out = In>
void checkGemm(Device &device, Shape shape, bool transA, bool transB,
               float alpha, float beta, plan::DType dtype = plan::DType::F32,
               plan::DType outDtype = plan::DType::F32,
               uint64_t workspaceBytes = 0) {
  SCOPED_TRACE(testing::Message()
               << shape.m << "x" << shape.n << "x" << shape.k << " transA "
               << transA << " transB " << transB << " alpha " << alpha
               << " beta " << beta << " of " << plan::EnumNameDType(dtype)
               << " to " << plan::EnumNameDType(outDtype));
  const int64_t rowsA = transA ? shape.k : shape.m;
  const int64_t columnsA = transA ? shape.m : shape.k;
  const int64_t rowsB = transB ? shape.n : shape.k;
  const int64_t columnsB = transB ? shape.k : shape.n;
  GemmCall call{};
  call.dtype = dtype;
  call.outDtype = outDtype;
  call.transA = transA;
  call.transB = transB;
  call.m = shape.m;
  call.n = shape.n;
  call.k = shape.k;
  call.alpha = alpha;
  call.beta = beta;
  const int64_t lda = call.lda = std::max<int64_t>(columnsA, 1) + 3;
  const int64_t ldb = call.ldb = std::max<int64_t>(columnsB, 1) + 1;
  const int64_t ldc = call.ldc = std::max<int64_t>(shape.n, 1) + 2;

  const auto a = randomValues<In>(static_cast<size_t>(rowsA * lda + 1), 1);
  const auto b = randomValues<In>(static_cast<size_t>(rowsB * ldb + 1), 2);
  auto c = randomValues<Out>(static_cast<size_t>(shape.m * ldc + 1), 3);
  if (beta == 0) // What is overwritten must not be read.
    for (int64_t i = 0; i < shape.m; ++i)
      for (int64_t j = 0; j < shape.n; ++j)
        c[i * ldc + j] = Out::store(std::numeric_limits<float>::quiet_NaN());

  Array<typename In::Type> deviceA(device, a), deviceB(device, b);
  Array<typename Out::Type> deviceC(device, c);
  const DeviceBuffer workspace(device, workspaceBytes, "workspace");
  call.a = deviceA.at();
  call.b = deviceB.at();
  call.c = deviceC.at();
  call.workspace = workspace.address();
  call.workspaceBytes = workspaceBytes;
  device.gemm(call, 0);
  const auto result = deviceC.values();

  for (int64_t i = 0; i < shape.m; ++i)
    for (int64_t j = 0; j < ldc; ++j) {
      const auto stored = result[i * ldc + j];
      if (j >= shape.n) {
        ASSERT_EQ(stored, c[i * ldc + j]) << "padding " << i << ", " << j;
        continue;
      }
      double sum = 0, magnitude = 0;
      for (int64_t l = 0; l < shape.k; ++l) {
        const double product =
            In::load(transA ? a[l * lda + i] : a[i * lda + l]) *
            In::load(transB ? b[j * ldb + l] : b[l * ldb + j]);
        sum += product;
        magnitude += std::abs(product);
      }
      double expected = double(alpha) * sum;
      if (beta != 0)
        expected += double(beta) * Out::load(c[i * ldc + j]);
      // Products of bf16 are summed in f32.
      const double tolerance =
          std::max(In::tolerance == F64::tolerance ? 0 : F32::tolerance,
                   Out::tolerance) *
              (std::abs(alpha) * magnitude + std::abs(beta)) +
          1e-30;
      ASSERT_NEAR(Out::load(stored), expected, tolerance) << i << ", " << j;
    }
}

} // namespace

TEST_P(DeviceConformance, GemmOfAllTransposes) {
  auto device = GetParam().make();
  const Shape shapes[] = {{1, 1, 1},     {1, 64, 32},  {5, 3, 7},
                          {64, 1, 16},   {48, 80, 33}, {127, 65, 129},
                          {128, 256, 64}};
  for (const Shape &shape : shapes)
    for (bool transA : {false, true})
      for (bool transB : {false, true}) {
        checkGemm(*device, shape, transA, transB, 1, 0);
        checkGemm(*device, shape, transA, transB, 1, 1);
        checkGemm(*device, shape, transA, transB, -0.5f, 0.25f);
      }
}

TEST_P(DeviceConformance, GemmOfEmptyShapes) {
  auto device = GetParam().make();
  const Shape shapes[] = {{0, 4, 4}, {4, 0, 4}, {4, 5, 0}, {0, 0, 0}};
  for (const Shape &shape : shapes)
    for (float beta : {0.f, 1.f, 0.5f})
      checkGemm(*device, shape, false, true, 2, beta);
}

TEST_P(DeviceConformance, GemmOfOtherTypes) {
  using plan::DType;
  auto device = GetParam().make();
  constexpr uint64_t workspace = uint64_t(4) << 20;
  for (const auto &[in, out] : GetParam().gemmTypes)
    for (const Shape &shape :
         {Shape{1, 1, 1}, Shape{5, 3, 7}, Shape{64, 48, 128}, Shape{77, 16, 0}})
      for (bool transA : {false, true})
        for (bool transB : {false, true})
          for (float beta : {0.f, 1.f, 0.5f}) {
            const auto check = [&]<typename In, typename Out>(In, Out) {
              checkGemm<In, Out>(*device, shape, transA, transB, 0.5f, beta, in,
                                 out, workspace);
            };
            if (in == DType::F64)
              check(F64(), F64());
            else if (out == DType::BF16)
              check(BF16(), BF16());
            else
              check(BF16(), F32());
          }
}

//===--- Streams and events -------------------------------------------------//

namespace {

/// Holds a stream up until it is opened.
class Gate {
public:
  ~Gate() { open(); }
  void open() {
    if (!opened)
      promise.set_value();
    opened = true;
  }
  std::function<void()> task() {
    return [future = future] { future.wait(); };
  }

private:
  std::promise<void> promise;
  std::shared_future<void> future = promise.get_future().share();
  bool opened = false;
};

std::unique_ptr<Device> prepared(const DeviceUnderTest &under) {
  auto device = under.make();
  device->prepare(3, 4);
  return device;
}

/// The id of the Error that `action` ends with.
template <typename Action>
int errorId(const Action &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.id();
  }
  return 0;
}

} // namespace

TEST_P(DeviceConformance, EveryStreamExecutesEverything) {
  auto device = prepared(GetParam());
  auto kernel = device->loadKernel(GetParam().kernel("scale_shift"));
  for (uint16_t stream : {0, 1, 2}) {
    Array<float> a(*device, {1, 2, 3, 4}), b(*device, {1, 1, 0, 1}),
        c(*device, std::vector<float>(4)), d(*device, std::vector<float>(4));
    GemmCall call{};
    call.dtype = call.outDtype = plan::DType::F32;
    call.m = call.n = call.k = call.lda = call.ldb = call.ldc = 2;
    call.alpha = 1;
    call.a = a.at();
    call.b = b.at();
    call.c = c.at();
    device->gemm(call, stream);
    LaunchArg args[] = {LaunchArg::ofAddress(c.at()), LaunchArg::ofAddress(c.at()), LaunchArg::ofInteger(10), LaunchArg::ofReal(2)};
    device->launch(*kernel, args, 4, 4, stream);
    args[2] = LaunchArg::ofInteger(-1); // Arguments are read before the return.
    device->copy(d.at(), c.at(), 4 * sizeof(float), stream);
    device->fill(d.at(), 0, sizeof(float), stream);
    // Downloads wait for all streams.
    EXPECT_EQ(c.values(), (std::vector<float>{12, 16, 16, 24})) << stream;
    EXPECT_EQ(d.values(), (std::vector<float>{0, 16, 16, 24})) << stream;
  }
}

TEST_P(DeviceConformance, HostCallsAreInTheOrderOfTheirStream) {
  auto device = prepared(GetParam());
  std::vector<int> seen[3];
  for (int i = 0; i < 30; ++i)
    for (uint16_t stream : {0, 1, 2})
      device->hostCall([&, i, stream] { seen[stream].push_back(i); }, stream);
  device->synchronize();
  std::vector<int> expected(30);
  std::iota(expected.begin(), expected.end(), 0);
  for (const auto &order : seen)
    EXPECT_EQ(order, expected);
}

TEST_P(DeviceConformance, StreamsDoNotWaitForEachOther) {
  auto device = prepared(GetParam());
  Gate gate;
  std::promise<void> second;
  device->hostCall(gate.task(), 1);
  device->hostCall([&] { second.set_value(); }, 2);
  EXPECT_EQ(second.get_future().wait_for(std::chrono::seconds(5)),
            std::future_status::ready);
}

TEST_P(DeviceConformance, WaitsHoldStreamsBack) {
  auto device = prepared(GetParam());
  Gate gate;
  std::atomic<bool> done = false;
  bool seen = false;
  device->hostCall(gate.task(), 1);
  device->hostCall([&] { done = true; }, 1);
  device->record(0, 1);
  device->wait(0, 2);
  device->hostCall([&] { seen = done; }, 2);
  device->record(1, 2);
  gate.open();
  device->wait(1, 0);
  bool onFirst = false;
  device->hostCall([&] { onFirst = seen; }, 0);
  device->synchronize();
  EXPECT_TRUE(seen);
  EXPECT_TRUE(onFirst);
}

TEST_P(DeviceConformance, WaitsForWhatWasNeverRecordedPass) {
  auto device = prepared(GetParam());
  std::promise<void> passed;
  device->wait(3, 0);
  device->wait(3, 1);
  device->hostCall([&] { passed.set_value(); }, 1);
  EXPECT_EQ(passed.get_future().wait_for(std::chrono::seconds(5)),
            std::future_status::ready);
}

TEST_P(DeviceConformance, WaitsMeanTheLatestRecordBeforeThem) {
  auto device = prepared(GetParam());
  Gate gate;
  std::promise<void> passed;
  bool done = false, seen = false;
  device->record(0, 1);
  device->wait(0, 2);
  device->hostCall([&] { passed.set_value(); }, 2);
  device->hostCall(gate.task(), 1);
  device->hostCall([&] { done = true; }, 1);
  device->record(0, 1); // after that wait, which it does not concern
  EXPECT_EQ(passed.get_future().wait_for(std::chrono::seconds(5)),
            std::future_status::ready);
  device->wait(0, 2); // not for the first record, which is done
  device->hostCall([&] { seen = done; }, 2);
  gate.open();
  device->synchronize();
  EXPECT_TRUE(seen);
}

// As a plan gathers ahead: one stream fills two slots in turn, the other one
// adds what it finds there.
TEST_P(DeviceConformance, EventsOrderALoopOverTwoSlots) {
  auto device = prepared(GetParam());
  constexpr int rounds = 100, width = 64;
  std::vector<float> values(rounds * width);
  std::iota(values.begin(), values.end(), 1.f);
  Array<float> source(*device, values);
  Array<float> slots(*device, std::vector<float>(2 * width));
  Array<float> results(*device, std::vector<float>(rounds * width));
  constexpr int64_t bytes = width * sizeof(float);
  const auto slot = [&](int round) { return slots.at(round % 2 * width); };
  for (int round = 0; round < rounds; ++round) {
    const auto parity = static_cast<uint32_t>(round % 2);
    device->wait(2 + parity, 1); // the slot is free
    device->copy(slot(round), source.at(round * width), bytes, 1);
    device->record(parity, 1);
    const uint16_t reader = round % 3 == 0 ? 2 : 0;
    device->wait(parity, reader);
    device->copy(results.at(round * width), slot(round), bytes, reader);
    device->fill(slot(round), 0xff, bytes, reader);
    device->record(2 + parity, reader);
  }
  EXPECT_EQ(results.values(), values);
}

TEST_P(DeviceConformance, StampsTellWhenAStreamGotSomewhere) {
  using Clock = std::chrono::steady_clock;
  auto device = prepared(GetParam());
  constexpr auto slack = std::chrono::milliseconds(2), nap = 10 * slack;
  std::vector<Clock::time_point> times[2];
  const auto tell = [&](uint16_t stream) {
    device->stamp([&, stream](auto time) { times[stream - 1].push_back(time); },
                  stream);
  };
  for (int round = 0; round < 2; ++round) {
    const auto before = Clock::now();
    for (auto &list : times)
      list.clear();
    for (uint16_t stream : {1, 2}) {
      tell(stream);
      device->hostCall([&] { std::this_thread::sleep_for(nap); }, stream);
      tell(stream);
    }
    device->synchronize();
    const auto after = Clock::now();
    for (const auto &list : times) {
      ASSERT_EQ(list.size(), 2u);
      EXPECT_GE(list[0], before - slack);
      EXPECT_GE(list[1] - list[0], nap - slack);
      EXPECT_LE(list[1], after + slack);
    }
  }
}

TEST_P(DeviceConformance, SynchronizeWaitsForAllStreams) {
  auto device = prepared(GetParam());
  std::atomic<int> done = 0;
  for (uint16_t stream : {1, 2})
    device->hostCall(
        [&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          ++done;
        },
        stream);
  device->synchronize();
  EXPECT_EQ(done, 2);
}

TEST_P(DeviceConformance, FailuresOfAStreamReachLaterCalls) {
  for (uint16_t stream : {0, 1, 2}) {
    auto device = prepared(GetParam());
    auto kernel = device->loadKernel(GetParam().kernel("count_visits"));
    Array<int32_t> visits(*device, {0});
    const LaunchArg args[] = {LaunchArg::ofAddress(visits.at())};
    std::atomic<bool> later = false;
    const int given = errorId([&] {
      device->hostCall(
          [] { throw Error(4099, ExitCode::RunFailure, "a test"); }, stream);
      device->hostCall([&] { later = true; }, stream);
      device->record(0, stream);
      device->wait(0, stream == 2 ? 1 : 2);
    });
    EXPECT_TRUE(given == 0 || given == 4099) << given;
    EXPECT_EQ(errorId([&] { device->synchronize(); }), 4099);
    EXPECT_EQ(errorId([&] { device->synchronize(); }), 4099);
    EXPECT_EQ(errorId([&] { device->wait(0, 0); }), 4099);
    EXPECT_EQ(errorId([&] { device->wait(3, 1); }), 4099);
    EXPECT_EQ(errorId([&] { device->record(0, 1); }), 4099);
    EXPECT_EQ(errorId([&] { device->launch(*kernel, args, 1, 1, 0); }), 4099);
    EXPECT_EQ(errorId([&] { device->hostCall([&] { later = true; }, 2); }),
              4099);
    EXPECT_EQ(errorId([&] { visits.values(); }), 4099);
    EXPECT_FALSE(later);
  }
}

TEST_P(DeviceConformance, FailuresEndWaitsAndDropWhatIsQueued) {
  auto device = prepared(GetParam());
  Gate gate;
  std::atomic<bool> later = false;
  device->hostCall(gate.task(), 1);
  device->hostCall([] { throw Error(4098, ExitCode::RunFailure, "first"); }, 1);
  device->hostCall([&] { later = true; }, 1);
  device->record(0, 1); // never reached
  device->wait(0, 2);
  device->hostCall([] { throw Error(4099, ExitCode::RunFailure, "second"); },
                   2);
  gate.open();
  // The call may return before stream 1 has come so far.
  const int given = errorId([&] { device->wait(0, 0); });
  EXPECT_TRUE(given == 0 || given == 4098) << given;
  EXPECT_EQ(errorId([&] { device->synchronize(); }), 4098);
  EXPECT_FALSE(later);
}

TEST_P(DeviceConformance, DevicesEndWithWorkUnderWay) {
  auto device = prepared(GetParam());
  for (uint16_t stream : {1, 2})
    for (int i = 0; i < 50; ++i)
      device->hostCall(
          [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); },
          stream);
  device->record(0, 1);
  device->wait(0, 2);
  device.reset();
}

} // namespace fsdpq::test
