#include "test/unit/device/fake_cuda/FakeCuda.h"
#include "test/unit/device/fake_cuda/FakeStreams.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <elf.h>
#include <unordered_map>

using namespace fsdpq::fake;

namespace {

State state;
std::unordered_map<uint64_t, size_t> allocations; ///< guarded by state.mutex
thread_local CUcontext current = nullptr;
int theContext; ///< its address is the context

Stream *streamOf(CUstream stream) { return reinterpret_cast<Stream *>(stream); }
Event *eventOf(CUevent event) { return reinterpret_cast<Event *>(event); }
template <typename T>
T *pointer(CUdeviceptr address) {
  return reinterpret_cast<T *>(address);
}

/// Calls need the context.
CUresult enter() {
  if (!current)
    return CUDA_ERROR_INVALID_CONTEXT;
  std::lock_guard lock(state.mutex);
  return state.isBroken ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

bool isBroken() {
  std::lock_guard lock(state.mutex);
  return state.isBroken;
}

CUresult give(CUstream stream, std::function<void()> task) {
  if (const CUresult result = enter())
    return result;
  streamOf(stream)->give([task = std::move(task)] {
    if (!isBroken())
      task();
  });
  return CUDA_SUCCESS;
}

//===--- Kernels ------------------------------------------------------------//

struct Module {
  std::string symbol; ///< "" in PTX, which may have any
  uint32_t arguments = 0, maps = 0;
  std::map<std::string, Module> entries; ///< of PTX, those that were asked for
};

double real(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void execute(const Launch &launch) {
  const std::vector<uint64_t> &values = launch.values;
  const auto items = static_cast<int64_t>(values.back());
  if (launch.kernel == "count_visits") {
    for (int64_t i = 0; i < items; ++i)
      ++pointer<int32_t>(values[0])[i];
  } else if (launch.kernel == "scale_shift") {
    for (int64_t i = 0; i < items; ++i)
      pointer<float>(values[1])[i] =
          static_cast<float>(real(values[3])) * pointer<float>(values[0])[i] +
          static_cast<float>(static_cast<int64_t>(values[2]));
  } else if (launch.kernel == "add_f32") { // of runtime/comm/nccl
    for (int64_t i = 0; i < items; ++i)
      pointer<float>(values[0])[i] += pointer<float>(values[1])[i];
  } else if (launch.kernel == "add_f64") {
    for (int64_t i = 0; i < items; ++i)
      pointer<double>(values[0])[i] += pointer<double>(values[1])[i];
  }
}

} // namespace

extern "C" {

State *fsdpqFakeCuda() { return &state; }

//===--- The machine --------------------------------------------------------//

CUresult CUDAAPI cuInit(unsigned) { return CUDA_SUCCESS; }

CUresult CUDAAPI cuDriverGetVersion(int *version) {
  *version = 13010;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                              : "CUDA_ERROR_OF_THE_FAKE";
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorString(CUresult, const char **text) {
  *text = "so said the fake";
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int *count) {
  *count = 2;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetName(char *name, int size, CUdevice) {
  std::strncpy(name, "Fake H200", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute which,
                                      CUdevice) {
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
           : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
           : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 4
                                                                   : 0;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice) {
  *bytes = state.memory;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceCanAccessPeer(int *can, CUdevice, CUdevice) {
  *can = 1;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&theContext);
  std::lock_guard lock(state.mutex);
  ++state.contexts;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice) {
  std::lock_guard lock(state.mutex);
  --state.contexts;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) {
  *context = current;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return enter();
}

//===--- Memory -------------------------------------------------------------//

CUresult CUDAAPI cuMemGetInfo(size_t *free, size_t *total) {
  std::lock_guard lock(state.mutex);
  *free = state.memory - state.bytesInUse;
  *total = state.memory;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  if (const CUresult result = enter())
    return result;
  std::lock_guard lock(state.mutex);
  if (bytes > state.memory - state.bytesInUse)
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  std::memset(memory, 0xa5, bytes);
  *address = reinterpret_cast<CUdeviceptr>(memory);
  allocations[*address] = bytes;
  state.bytesInUse += bytes;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  std::lock_guard lock(state.mutex);
  const auto found = allocations.find(address);
  if (found == allocations.end())
    return CUDA_ERROR_INVALID_VALUE;
  state.bytesInUse -= found->second;
  allocations.erase(found);
  std::free(pointer<void>(address));
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  *memory = std::calloc(1, bytes);
  return enter();
}
CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr *address, void *memory,
                                           unsigned) {
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return enter();
}
CUresult CUDAAPI cuMemFreeHost(void *memory) {
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                 size_t bytes, CUstream stream) {
  return give(stream, [=] { std::memset(pointer<void>(to), value, bytes); });
}
CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void *from,
                                   size_t bytes, CUstream stream) {
  return give(stream, [=] { std::memcpy(pointer<void>(to), from, bytes); });
}
CUresult CUDAAPI cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes,
                                   CUstream stream) {
  return give(stream, [=] { std::memcpy(to, pointer<void>(from), bytes); });
}
CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from,
                                   size_t bytes, CUstream stream) {
  return give(stream, [=] {
    std::memmove(pointer<void>(to), pointer<void>(from), bytes);
  });
}

//===--- Streams and events -------------------------------------------------//

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *stream, unsigned,
                                            int priority) {
  if (const CUresult result = enter())
    return result;
  *stream = reinterpret_cast<CUstream>(new Stream);
  std::lock_guard lock(state.mutex);
  state.priorities.push_back(priority);
  ++state.streams;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  delete streamOf(stream);
  std::lock_guard lock(state.mutex);
  --state.streams;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamQuery(CUstream stream) {
  // In this order: a stream that was idle has broken what it breaks.
  const bool isIdle = streamOf(stream)->isIdle();
  if (const CUresult result = enter())
    return result;
  return isIdle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  streamOf(stream)->await();
  return enter();
}
CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  const auto mark = eventOf(event)->latest;
  return give(stream, [mark] {
    if (mark)
      mark->await();
  });
}
CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr address,
                                     cuuint32_t value, unsigned) {
  return give(stream, [=] {
    while (static_cast<int32_t>(
               __atomic_load_n(pointer<uint32_t>(address), __ATOMIC_ACQUIRE) -
               value) < 0 &&
           !isBroken())
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
}
CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function,
                                  void *argument) {
  // As the real one may: one at a time, whatever the stream.
  static std::mutex calling;
  return give(stream, [=] {
    std::lock_guard lock(calling);
    function(argument);
  });
}

CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned) {
  *event = reinterpret_cast<CUevent>(new Event);
  std::lock_guard lock(state.mutex);
  ++state.events;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventDestroy(CUevent event) {
  delete eventOf(event);
  std::lock_guard lock(state.mutex);
  --state.events;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  if (const CUresult result = enter())
    return result;
  const auto mark = std::make_shared<Mark>();
  eventOf(event)->latest = mark;
  streamOf(stream)->give([mark] { mark->reach(); });
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventQuery(CUevent event) {
  return eventOf(event)->latest->isReached() ? CUDA_SUCCESS
                                             : CUDA_ERROR_NOT_READY;
}
CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  eventOf(event)->latest->await();
  return enter();
}
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent begin,
                                    CUevent end) {
  *milliseconds = std::chrono::duration<float, std::milli>(
                      eventOf(end)->latest->time - eventOf(begin)->latest->time)
                      .count();
  return CUDA_SUCCESS;
}

//===--- Kernels ------------------------------------------------------------//

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image) {
  if (const CUresult result = enter())
    return result;
  const auto *bytes = static_cast<const char *>(image);
  if (std::strncmp(bytes, ".version", 8) == 0) {
    *module = reinterpret_cast<CUmodule>(new Module);
    std::lock_guard lock(state.mutex);
    ++state.modules;
    return CUDA_SUCCESS;
  }
  Elf64_Ehdr header;
  uint32_t counts[2];
  std::memcpy(&header, bytes, sizeof header);
  std::memcpy(counts, bytes + sizeof header, sizeof counts);
  if (header.e_flags != 90)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  *module = reinterpret_cast<CUmodule>(new Module{
      bytes + sizeof header + sizeof counts, counts[0], counts[1], {}});
  std::lock_guard lock(state.mutex);
  ++state.modules;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  delete reinterpret_cast<Module *>(module);
  std::lock_guard lock(state.mutex);
  --state.modules;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module,
                                     const char *name) {
  auto &loaded = *reinterpret_cast<Module *>(module);
  if (loaded.symbol.empty()) {
    constexpr uint32_t arguments = 2; // and a number of items
    *function = reinterpret_cast<CUfunction>(
        &(loaded.entries[name] = {name, arguments, 0, {}}));
    return CUDA_SUCCESS;
  }
  *function = reinterpret_cast<CUfunction>(module);
  return loaded.symbol == name ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute,
                                    CUfunction) {
  *value = 1024;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuFuncSetAttribute(CUfunction, CUfunction_attribute,
                                    int value) {
  return value <= 227 * 1024 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, size_t index,
                                    size_t *offset, size_t *bytes) {
  const auto *module = reinterpret_cast<Module *>(function);
  if (index >= module->arguments + 1 + module->maps)
    return CUDA_ERROR_INVALID_VALUE;
  *offset = 8 * index;
  *bytes = index <= module->arguments ? 8 : sizeof(CUtensorMap);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned blocks,
                                unsigned y, unsigned z, unsigned threads,
                                unsigned, unsigned, unsigned sharedBytes,
                                CUstream stream, void **values, void **) {
  if (y != 1 || z != 1 || blocks == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto *module = reinterpret_cast<Module *>(function);
  Launch launch{module->symbol, blocks, threads, sharedBytes, {}, {}};
  for (uint32_t i = 0; i <= module->arguments; ++i)
    launch.values.push_back(*static_cast<uint64_t *>(values[i]));
  for (uint32_t i = 0; i < module->maps; ++i)
    launch.maps.push_back(
        static_cast<CUtensorMap *>(values[module->arguments + 1 + i])
            ->opaque[0]);
  bool fails;
  {
    std::lock_guard lock(state.mutex);
    fails = state.failingKernel == launch.kernel;
  }
  const CUresult result = give(stream, [launch, fails] {
    if (!fails)
      return execute(launch);
    std::lock_guard lock(state.mutex);
    state.isBroken = true;
  });
  std::lock_guard lock(state.mutex);
  if (result == CUDA_SUCCESS)
    state.launches.push_back(std::move(launch));
  return result;
}

CUresult CUDAAPI cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
    const cuuint64_t *extents, const cuuint64_t *pitches, const cuuint32_t *box,
    const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  if (reinterpret_cast<uint64_t>(address) % 16 != 0 ||
      reinterpret_cast<uint64_t>(map) % 64 != 0 || pitches[0] % 16 != 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(state.mutex);
  map->opaque[0] = state.maps.size();
  state.maps.push_back({reinterpret_cast<uint64_t>(address),
                        {extents, extents + rank},
                        {pitches, pitches + rank - 1},
                        {box, box + rank},
                        swizzle,
                        type});
  return CUDA_SUCCESS;
}

} // extern "C"
