#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/ObjectLoader.h"
#include "runtime/device/cpu/Parallel.h"
#include "runtime/device/cpu/Products.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <sys/mman.h>

namespace fsdpq::rt {

namespace {

/// Copies and fills of less are done before other threads would have woken up.
constexpr int64_t bytesWorthAThread = int64_t(1) << 20;

template <typename T>
T *pointer(DeviceAddress address) {
  return reinterpret_cast<T *>(address);
}

} // namespace

CpuDevice::CpuDevice(const CpuDeviceOptions &options)
    : threadCount(options.threads
                      ? options.threads
                      : static_cast<unsigned>(omp_get_max_threads())),
      deterministic(options.deterministic), delays(options.delays),
      loader(std::make_unique<ObjectLoader>()),
      streams(std::make_unique<Streams>(1, 0, delays)) {}

CpuDevice::~CpuDevice() = default;

//===--- Streams ------------------------------------------------------------//

void CpuDevice::prepare(uint16_t count, uint32_t events) {
  streams = std::make_unique<Streams>(count, events, delays);
}

void CpuDevice::record(uint32_t event, uint16_t stream) {
  streams->record(event, stream);
}

void CpuDevice::wait(uint32_t event, uint16_t stream) {
  streams->wait(event, stream);
}

void CpuDevice::hostCall(std::function<void()> task, uint16_t stream) {
  streams->run(std::move(task), stream);
}

void CpuDevice::synchronize() { streams->synchronize(); }

//===--- Memory -------------------------------------------------------------//

void CpuDevice::requireTarget(std::string_view target) const {
  const std::string missing = missingHostFeatures(target);
  if (!missing.empty())
    throw Error(4001, ExitCode::BadInput,
                "the plan needs CPU features that this machine lacks: " +
                    missing,
                std::string(target), "make the plan on this machine");
}

DeviceAddress CpuDevice::allocate(uint64_t bytes, std::string_view what) {
  // Pages come from the system zeroed, and only when they are touched.
  void *memory =
      ::mmap(nullptr, std::max<uint64_t>(bytes, 1), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(4002, ExitCode::DoesNotFit,
                "no memory for " + std::to_string(bytes) + " bytes of " +
                    std::string(what),
                "", "give a smaller --memory-budget, batch or context length");
  return reinterpret_cast<DeviceAddress>(memory);
}

void CpuDevice::free(DeviceAddress address, uint64_t bytes) {
  ::munmap(pointer<void>(address), std::max<uint64_t>(bytes, 1));
}

void CpuDevice::upload(DeviceAddress to, const void *from, uint64_t bytes) {
  synchronize();
  if (bytes > 0)
    std::memcpy(pointer<void>(to), from, bytes);
}

void CpuDevice::download(void *to, DeviceAddress from, uint64_t bytes) {
  synchronize();
  if (bytes > 0)
    std::memcpy(to, pointer<void>(from), bytes);
}

std::unique_ptr<LoadedKernel> CpuDevice::loadKernel(const KernelImage &image) {
  if (image.form != plan::KernelForm::CpuObject)
    throw Error(4003, ExitCode::BadInput,
                "kernel '" + std::string(image.name) + "' is not a CPU object",
                "", "make the plan for the CPU");
  return loader->load(image);
}

//===--- Instructions -------------------------------------------------------//

void CpuDevice::launch(const LoadedKernel &kernel, const LaunchArg *args,
                       uint32_t argCount, int64_t grid, uint16_t stream) {
  if (grid <= 0)
    return;
  const KernelEntry entry = static_cast<const LoadedObject &>(kernel).entry;
  auto start = [entry, argCount, grid,
                threads = threadsOf(stream)](const LaunchArg *values) {
    void *pointers[maxLaunchArgs];
    for (uint32_t i = 0; i < argCount; ++i)
      pointers[i] = values[i].kind == LaunchArg::Kind::Address
                        ? pointer<void>(values[i].address)
                        : const_cast<int64_t *>(&values[i].integer);
    inParallel(grid, threads, [&](int64_t begin, int64_t end) {
      entry(pointers, begin, end);
    });
  };
  if (stream == 0) // done before the arguments change
    return streams->run([&] { start(args); }, stream);
  std::array<LaunchArg, maxLaunchArgs> copies{};
  std::copy(args, args + argCount, copies.begin());
  streams->run([start, copies] { start(copies.data()); }, stream);
}

void CpuDevice::gemm(const GemmCall &call, uint16_t stream) {
  if (!canMultiply(call.dtype, call.outDtype))
    throw Error(4004, ExitCode::RunFailure,
                std::string("the CPU has no GEMM for elements of ") +
                    plan::EnumNameDType(call.dtype) + " with a result in " +
                    plan::EnumNameDType(call.outDtype),
                "", "compile such products to kernels");
  if (call.m <= 0 || call.n <= 0)
    return;
  streams->run(
      [this, call, threads = threadsOf(stream)] {
        multiply(call, threads, deterministic);
      },
      stream);
}

void CpuDevice::copy(DeviceAddress to, DeviceAddress from, int64_t bytes,
                     uint16_t stream) {
  if (bytes <= 0)
    return;
  // Moves rather than copies: a plan whose ranges overlap is wrong, but must
  // not be undefined.
  const int64_t threads =
      std::min<int64_t>(threadsOf(stream), bytes / bytesWorthAThread);
  streams->run(
      [=] {
        inParallel(bytes, threads, [&](int64_t begin, int64_t end) {
          std::memmove(pointer<char>(to) + begin, pointer<char>(from) + begin,
                       static_cast<size_t>(end - begin));
        });
      },
      stream);
}

void CpuDevice::fill(DeviceAddress to, uint8_t value, int64_t bytes,
                     uint16_t stream) {
  if (bytes <= 0)
    return;
  const int64_t threads =
      std::min<int64_t>(threadsOf(stream), bytes / bytesWorthAThread);
  streams->run(
      [=] {
        inParallel(bytes, threads, [&](int64_t begin, int64_t end) {
          std::memset(pointer<char>(to) + begin, value,
                      static_cast<size_t>(end - begin));
        });
      },
      stream);
}

} // namespace fsdpq::rt
