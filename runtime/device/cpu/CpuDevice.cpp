#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cpu/ObjectLoader.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/support/Error.h"
#include "runtime/support/StopSignalMask.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
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

/// Once for each of OpenMP's threads.
void keepFromSignals() {
  thread_local bool isDone = false;
  if (!isDone)
    blockStopSignals();
  isDone = true;
}

/// Calls body(begin, end) for contiguous ranges that make up [0, count), on at
/// most `threads` threads. Which thread gets which range depends on nothing but
/// the numbers.
template <typename Body>
void inParallel(int64_t count, int64_t threads, const Body &body) {
  threads = std::min(count, threads);
  if (threads <= 1) {
    body(int64_t(0), count);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    if (omp_get_thread_num() > 0)
      keepFromSignals();
    // OpenMP may give fewer threads than asked for.
    const int64_t parts = omp_get_num_threads(), part = omp_get_thread_num();
    const int64_t size = count / parts, rest = count % parts;
    const int64_t begin = part * size + std::min(part, rest);
    body(begin, begin + size + (part < rest ? 1 : 0));
  }
}

/// oneDNN takes the number of threads from OpenMP's setting of this thread.
class ThreadSetting {
public:
  explicit ThreadSetting(unsigned threads) : before(omp_get_max_threads()) {
    omp_set_num_threads(static_cast<int>(threads));
  }
  ~ThreadSetting() { omp_set_num_threads(before); }

private:
  int before;
};

/// What a GEMM without a product does.
void scaleRows(float *c, int64_t rows, int64_t columns, int64_t pitch,
               float beta) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      float &element = c[row * pitch + column];
      element = beta == 0 ? 0 : beta * element;
    }
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

/// One product by oneDNN.
static void callLibrary(const GemmCall &call) {
  const dnnl_status_t status = dnnl_sgemm(
      call.transA ? 'T' : 'N', call.transB ? 'T' : 'N', call.m, call.n, call.k,
      call.alpha, pointer<float>(call.a), call.lda, pointer<float>(call.b),
      call.ldb, call.beta, pointer<float>(call.c), call.ldc);
  if (status == dnnl_out_of_memory)
    throw Error(4002, ExitCode::DoesNotFit, "no memory for a GEMM's workspace");
  if (status != dnnl_success)
    throw Error(4005, ExitCode::RunFailure,
                "oneDNN refused a GEMM of m " + std::to_string(call.m) +
                    ", n " + std::to_string(call.n) + ", k " +
                    std::to_string(call.k) + " with status " +
                    std::to_string(status));
}

void CpuDevice::multiply(const GemmCall &call, unsigned threads) const {
  if (call.k <= 0)
    return scaleRows(pointer<float>(call.c), call.m, call.n, call.ldc,
                     call.beta);
  if (deterministic)
    return multiplyInPanels(call, threads);
  ThreadSetting setting(threads);
  callLibrary(call);
}

/// Cuts C into panels that depend on nothing but its shape, each computed by one
/// thread: how the library would share the work out between threads changes the
/// order of its sums. Panels have at least 64 rows (or columns) but where C has
/// less, for the library sums narrow products in another order.
void CpuDevice::multiplyInPanels(const GemmCall &call, unsigned threads) const {
  constexpr int64_t smallest = 64, mostPanels = 16;
  const bool alongRows = call.m >= call.n;
  const int64_t length = alongRows ? call.m : call.n;
  const int64_t panel =
      std::max(smallest, (length / mostPanels + smallest - 1) / smallest * smallest);
  const int64_t panels = std::max<int64_t>(1, length / panel); // the last is longer
  std::exception_ptr failure;
  inParallel(panels, threads, [&](int64_t begin, int64_t end) {
    ThreadSetting setting(1);
    for (int64_t number = begin; number < end; ++number) {
      const int64_t first = number * panel;
      const int64_t size = number + 1 == panels ? length - first : panel;
      GemmCall part = call;
      const auto advance = [](DeviceAddress &address, int64_t elements) {
        address += static_cast<uint64_t>(elements) * sizeof(float);
      };
      if (alongRows) {
        part.m = size;
        advance(part.a, call.transA ? first : first * call.lda);
        advance(part.c, first * call.ldc);
      } else {
        part.n = size;
        advance(part.b, call.transB ? first * call.ldb : first);
        advance(part.c, first);
      }
      try {
        callLibrary(part);
      } catch (...) {
#pragma omp critical
        failure = std::current_exception();
      }
    }
  });
  if (failure)
    std::rethrow_exception(failure);
}

void CpuDevice::gemm(const GemmCall &call, uint16_t stream) {
  if (call.dtype != plan::DType::F32)
    throw Error(4004, ExitCode::RunFailure,
                std::string("the CPU has no GEMM for element type ") +
                    plan::EnumNameDType(call.dtype),
                "", "compile such products to kernels");
  if (call.m <= 0 || call.n <= 0)
    return;
  streams->run(
      [this, call, threads = threadsOf(stream)] { multiply(call, threads); },
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
