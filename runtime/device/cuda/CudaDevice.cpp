#include "runtime/device/cuda/CudaDevice.h"

#include "runtime/device/cuda/Allocations.h"
#include "runtime/device/cuda/CublasGemm.h"
#include "runtime/device/cuda/CudaKernel.h"
#include "runtime/device/cuda/DeviceFailure.h"
#include "runtime/device/cuda/DriverApi.h"
#include "runtime/device/cuda/Gpus.h"
#include "runtime/device/cuda/HostTasks.h"
#include "runtime/device/cuda/Stamps.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

namespace fsdpq::rt {

namespace {

/// What is allocated starts at multiples of this.
constexpr uint64_t alignment = 256;

/// Tells devices apart that have lived one after the other at one address.
std::atomic<uint64_t> latestDevice = 0;
/// The one whose context is the thread's.
thread_local uint64_t currentDevice = 0;

bool waitsForEachLaunch() {
  const char *value = std::getenv("FSDPQ_SYNC_LAUNCH");
  return value && *value && std::strcmp(value, "0") != 0;
}

} // namespace

//===--- State --------------------------------------------------------------//

struct CudaDevice::Impl {
  struct Stream {
    CUstream handle = nullptr;
    std::optional<HostTasks> tasks; ///< made when the first one comes
  };

  explicit Impl(int ordinal) : driver(DriverApi::get()) {
    int count = 0;
    driver.check(driver.cuDeviceGetCount(&count), "counting the GPUs");
    if (ordinal < 0 || ordinal >= count)
      throw Error(4042, ExitCode::BadInput,
                  "there is no GPU " + std::to_string(ordinal) + ": " +
                      std::to_string(count) + " are visible",
                  "", "`fsdpq-run doctor` lists them");
    info = describeGpu(driver, ordinal);
    driver.check(driver.cuDeviceGet(&device, ordinal), "opening the GPU");
    driver.check(driver.cuDevicePrimaryCtxRetain(&context, device),
                 "opening the GPU");
    try {
      makeCurrent();
      size_t total = 0, free = 0;
      driver.check(driver.cuMemGetInfo(&free, &total), "opening the GPU");
      info.freeBytes = free;
      driver.check(
          driver.cuCtxGetStreamPriorityRange(&lowPriority, &highPriority),
          "opening the GPU");
      own = makeStream(highPriority);
      addStream();
    } catch (...) {
      close();
      throw;
    }
  }

  ~Impl() { close(); }

  void close() {
    driver.cuCtxSetCurrent(context);
    // What waits for a host task that would never end is not waited for long:
    // those that have not begun are dropped.
    failure.set(std::make_exception_ptr(
        Error(4050, ExitCode::RunFailure, "the device has ended")));
    for (auto &stream : streams)
      driver.cuStreamSynchronize(stream->handle);
    stamps.reset();
    for (auto &stream : streams) {
      stream->tasks.reset();
      driver.cuStreamDestroy(stream->handle);
    }
    streams.clear();
    if (own)
      driver.cuStreamDestroy(own);
    for (CUevent event : events)
      driver.cuEventDestroy(event);
    if (zeros)
      driver.cuMemFree(zeros);
    gemms.reset();
    driver.cuCtxSetCurrent(nullptr);
    currentDevice = 0;
    driver.cuDevicePrimaryCtxRelease(device);
  }

  void makeCurrent() const {
    if (currentDevice == number)
      return;
    driver.check(driver.cuCtxSetCurrent(context), "choosing the GPU");
    currentDevice = number;
  }

  CUstream makeStream(int priority) const {
    CUstream stream = nullptr;
    driver.check(driver.cuStreamCreateWithPriority(
                     &stream, CU_STREAM_NON_BLOCKING, priority),
                 "making a stream");
    return stream;
  }

  void addStream() {
    streams.push_back(std::make_unique<Stream>());
    streams.back()->handle =
        makeStream(streams.size() == 1 ? lowPriority : highPriority);
  }

  CUstream handle(uint16_t stream) const { return streams[stream]->handle; }

  /// What every call begins with.
  void enter() {
    failure.check();
    makeCurrent();
  }

  /// Throws an Error for the result of a call; one that ends the context is what
  /// all later calls throw.
  void check(CUresult result, const std::string &action) {
    if (result == CUDA_SUCCESS)
      return;
    const Error error = driver.error(result, action);
    if (endsContext(result)) {
      failure.set(std::make_exception_ptr(error));
      failure.check();
    }
    throw error;
  }

  /// Does `work`, which is named by `name()`, on a stream.
  template <typename Work, typename Name>
  void give(CUstream stream, const Work &work, const Name &name) {
    try {
      work();
    } catch (...) {
      // It may be the failure of something before.
      if (endsContext(driver.cuStreamQuery(stream)))
        failure.set(std::current_exception());
      throw;
    }
    if (isSynchronous)
      if (const CUresult result = driver.cuStreamSynchronize(stream);
          result != CUDA_SUCCESS)
        throw failureOf(name(), result);
  }

  Error failureOf(const std::string &name, CUresult result) {
    const Error error(4050, ExitCode::RunFailure,
                      name + " failed on the GPU: " + driver.text(result), "",
                      "compute-sanitizer tells the thread and the address");
    failure.set(std::make_exception_ptr(error));
    return error;
  }

  /// Waits for all streams, but not after a failure that nobody has seen.
  void synchronize() {
    using namespace std::chrono_literals;
    makeCurrent();
    const bool isNews = !failure.wasThrown();
    constexpr int turnsAtOnce =
        2000; // some 100 us, as long as a step's end takes
    int turns = 0;
    for (auto &stream : streams)
      while (true) {
        if (isNews)
          failure.check();
        const CUresult result = driver.cuStreamQuery(stream->handle);
        if (result == CUDA_SUCCESS)
          break;
        if (result != CUDA_ERROR_NOT_READY) {
          if (failure.isSet())
            break;
          check(result, "waiting for the end of all work");
        }
        if (++turns > turnsAtOnce)
          std::this_thread::sleep_for(20us);
      }
    failure.check();
    if (stamps)
      stamps->finish(own);
  }

  /// A copy between host and device. The driver stages what is not pinned.
  template <typename Copy>
  void transfer(const Copy &copy, const char *action) {
    synchronize();
    check(copy(own), action);
    check(driver.cuStreamSynchronize(own), action);
  }

  CublasGemm &products() {
    if (!gemms)
      gemms.emplace();
    return *gemms;
  }

  /// At least `bytes` of zeros that nobody writes.
  DeviceAddress zeroBytes(uint64_t bytes) {
    if (bytes <= zeroCount)
      return zeros;
    synchronize();
    if (zeros)
      check(driver.cuMemFree(zeros), "freeing memory");
    zeros = 0;
    zeroCount = 0;
    check(driver.cuMemAlloc(&zeros, bytes),
          "taking memory for a GEMM without a sum");
    check(driver.cuMemsetD8Async(zeros, 0, bytes, own), "clearing memory");
    check(driver.cuStreamSynchronize(own), "clearing memory");
    zeroCount = bytes;
    return zeros;
  }

  const DriverApi &driver;
  const uint64_t number = ++latestDevice;
  const bool isSynchronous = waitsForEachLaunch();
  GpuInfo info{};
  CUdevice device = 0;
  CUcontext context = nullptr;
  int lowPriority = 0, highPriority = 0;
  DeviceFailure failure;
  CUstream own = nullptr; ///< for what is waited for at once
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<CUevent> events;
  std::optional<Stamps> stamps;
  Allocations allocations;
  std::optional<CublasGemm> gemms;
  CUdeviceptr zeros = 0;
  uint64_t zeroCount = 0;
};

CudaDevice::CudaDevice(int ordinal) : impl(std::make_unique<Impl>(ordinal)) {}
CudaDevice::~CudaDevice() = default;

const GpuInfo &CudaDevice::info() const { return impl->info; }

void *CudaDevice::stream(uint16_t number) const { return impl->handle(number); }

void CudaDevice::makeCurrent() const { impl->makeCurrent(); }

uint64_t CudaDevice::usedBytes() const {
  impl->makeCurrent();
  size_t free = 0, total = 0;
  impl->check(impl->driver.cuMemGetInfo(&free, &total),
              "asking for the memory in use");
  return total - free;
}

void CudaDevice::fail(std::exception_ptr cause) {
  impl->failure.set(std::move(cause));
}

void CudaDevice::check() const { impl->failure.check(); }

void CudaDevice::requireTarget(std::string_view target) const {
  if (target != impl->info.architecture)
    throw Error(4001, ExitCode::BadInput,
                "the plan was made for \"" + std::string(target) +
                    "\"; this GPU (" + impl->info.name + ") is " +
                    impl->info.architecture,
                "", "make the plan on this machine");
}

//===--- Streams ------------------------------------------------------------//

void CudaDevice::prepare(uint16_t streams, uint32_t events) {
  impl->enter();
  while (impl->streams.size() < streams)
    impl->addStream();
  while (impl->events.size() < events) {
    CUevent event = nullptr;
    impl->check(impl->driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING),
                "making an event");
    impl->events.push_back(event);
  }
}

void CudaDevice::record(uint32_t event, uint16_t stream) {
  impl->enter();
  impl->check(
      impl->driver.cuEventRecord(impl->events[event], impl->handle(stream)),
      "recording an event");
}

void CudaDevice::wait(uint32_t event, uint16_t stream) {
  impl->enter();
  impl->check(impl->driver.cuStreamWaitEvent(impl->handle(stream),
                                             impl->events[event],
                                             CU_EVENT_WAIT_DEFAULT),
              "waiting for an event");
}

void CudaDevice::hostCall(std::function<void()> task, uint16_t stream) {
  impl->enter();
  Impl::Stream &target = *impl->streams[stream];
  if (!target.tasks)
    target.tasks.emplace(impl->driver, target.handle, impl->failure);
  target.tasks->run(std::move(task));
}

void CudaDevice::stamp(UseTime use, uint16_t stream) {
  impl->enter();
  if (!impl->stamps)
    impl->stamps.emplace(impl->driver);
  impl->stamps->add(std::move(use), impl->handle(stream));
}

void CudaDevice::synchronize() { impl->synchronize(); }

//===--- Memory -------------------------------------------------------------//

DeviceAddress CudaDevice::allocate(uint64_t bytes, std::string_view what) {
  impl->enter();
  const uint64_t whole =
      std::max((bytes + alignment - 1) / alignment, uint64_t(1)) * alignment;
  CUdeviceptr address = 0;
  const CUresult result = impl->driver.cuMemAlloc(&address, whole);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    impl->driver.cuMemGetInfo(&free, &total);
    throw Error(4002, ExitCode::DoesNotFit,
                "the GPU has no memory for " + std::to_string(bytes) +
                    " bytes of " + std::string(what) + ": " +
                    std::to_string(free) + " of its " + std::to_string(total) +
                    " bytes are free",
                "", "give a smaller --memory-budget, batch or context length");
  }
  impl->check(result, "taking memory for " + std::string(what));
  impl->check(impl->driver.cuMemsetD8Async(address, 0, whole, impl->own),
              "clearing memory");
  impl->check(impl->driver.cuStreamSynchronize(impl->own), "clearing memory");
  impl->allocations.add(address, whole);
  return address;
}

void CudaDevice::free(DeviceAddress address, uint64_t) {
  impl->allocations.remove(address);
  // Of a context that a failure has ended nothing is left to give back.
  if (impl->driver.cuCtxSetCurrent(impl->context) == CUDA_SUCCESS) {
    currentDevice = impl->number;
    impl->driver.cuMemFree(address);
  }
}

void CudaDevice::upload(DeviceAddress to, const void *from, uint64_t bytes) {
  impl->transfer(
      [&](CUstream stream) {
        return bytes == 0
                   ? CUDA_SUCCESS
                   : impl->driver.cuMemcpyHtoDAsync(to, from, bytes, stream);
      },
      "copying to the GPU");
}

void CudaDevice::download(void *to, DeviceAddress from, uint64_t bytes) {
  impl->transfer(
      [&](CUstream stream) {
        return bytes == 0
                   ? CUDA_SUCCESS
                   : impl->driver.cuMemcpyDtoHAsync(to, from, bytes, stream);
      },
      "copying from the GPU");
}

std::unique_ptr<LoadedKernel> CudaDevice::loadKernel(const KernelImage &image) {
  impl->enter();
  return std::make_unique<CudaKernel>(
      impl->driver, image, impl->info.processors, impl->info.architecture);
}

//===--- Instructions -------------------------------------------------------//

void CudaDevice::launch(const LoadedKernel &kernel, const LaunchArg *args,
                        uint32_t argCount, int64_t grid, uint16_t stream) {
  impl->enter();
  if (grid <= 0)
    return;
  const auto &loaded = static_cast<const CudaKernel &>(kernel);
  const CUstream handle = impl->handle(stream);
  impl->give(
      handle,
      [&] { loaded.launch(args, argCount, grid, impl->allocations, handle); },
      [&] { return "kernel '" + loaded.name() + "'"; });
}

void CudaDevice::gemm(const GemmCall &call, uint16_t stream) {
  impl->enter();
  if (call.m <= 0 || call.n <= 0)
    return;
  GemmCall own = call;
  if (call.k <= 0) { // 0 times a product of zeros
    constexpr uint64_t largestElement = 8;
    own.k = 1;
    own.alpha = 0;
    own.transA = true;
    own.transB = false;
    own.lda = call.m;
    own.ldb = call.n;
    own.a = own.b = impl->zeroBytes(
        static_cast<uint64_t>(std::max(call.m, call.n)) * largestElement);
  }
  const CUstream handle = impl->handle(stream);
  impl->give(
      handle, [&] { impl->products().run(own, handle); },
      [&] { return "GEMM " + GemmShape(own).text(); });
}

void CudaDevice::copy(DeviceAddress to, DeviceAddress from, int64_t bytes,
                      uint16_t stream) {
  impl->enter();
  if (bytes <= 0)
    return;
  const CUstream handle = impl->handle(stream);
  impl->give(
      handle,
      [&] {
        impl->check(impl->driver.cuMemcpyDtoDAsync(
                        to, from, static_cast<size_t>(bytes), handle),
                    "copying within the GPU");
      },
      [&] { return "a copy of " + std::to_string(bytes) + " bytes"; });
}

void CudaDevice::fill(DeviceAddress to, uint8_t value, int64_t bytes,
                      uint16_t stream) {
  impl->enter();
  if (bytes <= 0)
    return;
  const CUstream handle = impl->handle(stream);
  impl->give(
      handle,
      [&] {
        impl->check(impl->driver.cuMemsetD8Async(
                        to, value, static_cast<size_t>(bytes), handle),
                    "filling memory of the GPU");
      },
      [&] { return "a fill of " + std::to_string(bytes) + " bytes"; });
}

} // namespace fsdpq::rt
