#include "test/gpu/KernelDevices.h"

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;

namespace {

constexpr uint64_t guardBytes = 4096;
constexpr uint8_t guardValue = 0xC3;

std::vector<LaunchArg> makeArguments(const Case &checked,
                                     const std::vector<DeviceAddress> &addresses) {
  std::vector<LaunchArg> arguments;
  for (DeviceAddress address : addresses)
    arguments.push_back(LaunchArg::ofAddress(address));
  for (int64_t integer : checked.integers)
    arguments.push_back(LaunchArg::ofInteger(integer));
  for (double real : checked.reals)
    arguments.push_back(LaunchArg::ofReal(real));
  return arguments;
}

/// The launch shape as a plan holds it.
class ShapeTable {
public:
  explicit ShapeTable(const cuda::LaunchShape &shape) {
    plan::LaunchShapeT table;
    table.threads = shape.threads;
    table.shared_bytes = shape.sharedBytes;
    table.items_per_block = shape.itemsPerBlock;
    table.blocks_per_processor = shape.blocksPerProcessor;
    for (const cuda::TensorMap &map : shape.maps)
      table.maps.push_back(plan::TensorMap(map.argument, map.boxColumns,
                                           map.boxRows, map.begin, map.columns,
                                           map.pitch));
    buffer.Finish(plan::LaunchShape::Pack(buffer, &table));
  }
  const plan::LaunchShape *get() const {
    return flatbuffers::GetRoot<plan::LaunchShape>(buffer.GetBufferPointer());
  }

private:
  flatbuffers::FlatBufferBuilder buffer;
};

} // namespace

//===--- CPU ----------------------------------------------------------------//

struct HostRunner::Impl {
  CpuDevice device;
};

HostRunner::HostRunner() : impl(std::make_unique<Impl>()) {
  impl->device.prepare(1, 0);
}
HostRunner::~HostRunner() = default;

void HostRunner::run(const cpu::CompiledKernel &kernel, const Case &checked,
                     std::vector<std::vector<uint8_t>> &arrays) {
  auto loaded = impl->device.loadKernel({kernel.name, kernel.symbol,
                                         plan::KernelForm::CpuObject,
                                         kernel.object.data(),
                                         kernel.object.size()});
  std::vector<DeviceAddress> addresses;
  for (auto &array : arrays)
    addresses.push_back(reinterpret_cast<DeviceAddress>(array.data()));
  const auto arguments = makeArguments(checked, addresses);
  impl->device.launch(*loaded, arguments.data(),
                      static_cast<uint32_t>(arguments.size()), checked.items, 0);
  impl->device.synchronize();
}

//===--- GPU ----------------------------------------------------------------//

struct GpuRunner::Impl {
  CudaDevice device{0};

  /// An array with guard bytes on both sides.
  struct Placed {
    DeviceAddress base;
    uint64_t bytes;
    DeviceAddress data() const { return base + guardBytes; }
    uint64_t whole() const { return bytes + 2 * guardBytes; }
  };

  std::vector<Placed> place(const std::vector<std::vector<uint8_t>> &arrays) {
    std::vector<Placed> placed;
    for (const auto &array : arrays) {
      Placed p{0, array.size()};
      p.base = device.allocate(p.whole(), "a checked array");
      std::vector<uint8_t> all(p.whole(), guardValue);
      std::copy(array.begin(), array.end(), all.begin() + guardBytes);
      device.upload(p.base, all.data(), all.size());
      placed.push_back(p);
    }
    return placed;
  }

  void release(const std::vector<Placed> &placed) {
    for (const Placed &p : placed)
      device.free(p.base, p.whole());
  }

  std::unique_ptr<LoadedKernel> load(const cuda::CompiledKernel &kernel,
                                     const ShapeTable &shape) {
    return device.loadKernel({kernel.name, kernel.symbol,
                              plan::KernelForm::CudaCubin, kernel.cubin.data(),
                              kernel.cubin.size(), shape.get()});
  }

  static std::vector<DeviceAddress> addresses(const std::vector<Placed> &placed) {
    std::vector<DeviceAddress> result;
    for (const Placed &p : placed)
      result.push_back(p.data());
    return result;
  }
};

GpuRunner::GpuRunner() : impl(std::make_unique<Impl>()) {
  impl->device.prepare(1, 0);
}
GpuRunner::~GpuRunner() = default;

std::string GpuRunner::architecture() const {
  return impl->device.info().architecture;
}

std::string GpuRunner::run(const cuda::CompiledKernel &kernel, const Case &checked,
                           std::vector<std::vector<uint8_t>> &arrays) {
  try {
    const ShapeTable shape(kernel.launch);
    auto loaded = impl->load(kernel, shape);
    const auto placed = impl->place(arrays);
    const auto arguments = makeArguments(checked, Impl::addresses(placed));
    impl->device.launch(*loaded, arguments.data(),
                        static_cast<uint32_t>(arguments.size()), checked.items, 0);
    impl->device.synchronize();
    std::string problem;
    for (size_t i = 0; i < arrays.size(); ++i) {
      std::vector<uint8_t> all(placed[i].whole());
      impl->device.download(all.data(), placed[i].base, all.size());
      const auto isGuard = [](uint8_t byte) { return byte == guardValue; };
      if (!std::all_of(all.begin(), all.begin() + guardBytes, isGuard) ||
          !std::all_of(all.end() - guardBytes, all.end(), isGuard))
        problem = "it wrote beside its array " + std::to_string(i);
      std::copy(all.begin() + guardBytes, all.end() - guardBytes,
                arrays[i].begin());
    }
    impl->release(placed);
    return problem;
  } catch (const std::exception &error) {
    return error.what();
  }
}

double GpuRunner::seconds(const cuda::CompiledKernel &kernel, const Case &checked,
                          const std::vector<std::vector<uint8_t>> &arrays) {
  const ShapeTable shape(kernel.launch);
  auto loaded = impl->load(kernel, shape);
  // Sets in turn, together larger than the cache.
  uint64_t bytes = 1;
  for (const auto &array : arrays)
    bytes += array.size();
  const size_t sets = std::clamp<size_t>(200'000'000 / bytes + 1, 1, 8);
  std::vector<std::vector<Impl::Placed>> placed;
  std::vector<std::vector<LaunchArg>> arguments;
  for (size_t i = 0; i < sets; ++i) {
    placed.push_back(impl->place(arrays));
    arguments.push_back(makeArguments(checked, Impl::addresses(placed.back())));
  }
  std::vector<double> times;
  for (int round = 0; round < 12; ++round) {
    std::chrono::steady_clock::time_point begun, ended;
    impl->device.stamp([&](auto now) { begun = now; }, 0);
    for (const auto &values : arguments)
      impl->device.launch(*loaded, values.data(),
                          static_cast<uint32_t>(values.size()), checked.items, 0);
    impl->device.stamp([&](auto now) { ended = now; }, 0);
    impl->device.synchronize();
    if (round >= 2)
      times.push_back(std::chrono::duration<double>(ended - begun).count() /
                      static_cast<double>(sets));
  }
  for (const auto &set : placed)
    impl->release(set);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}
