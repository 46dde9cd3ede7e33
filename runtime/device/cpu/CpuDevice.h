//===- CpuDevice.h - The host's cores as a device ---------------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cpu/Streams.h"

namespace fsdpq::rt {

class ObjectLoader;

struct CpuDeviceOptions {
  /// 0 takes OpenMP's number (OMP_NUM_THREADS, else all cores).
  unsigned threads = 0;
  /// GEMMs give the same bits for every number of threads.
  bool deterministic = false;
  StreamDelays delays;
};

/// Stream 0 is the calling thread with OpenMP's, whose calls are done on return;
/// each other stream is a thread. Kernels are relocatable ELF objects, GEMMs
/// oneDNN's (of f32 and bf16: for other types the compiler emits kernels).
/// Floating-point state is IEEE's default: subnormals are kept.
class CpuDevice final : public Device {
public:
  explicit CpuDevice(unsigned threads = 0)
      : CpuDevice(CpuDeviceOptions{threads, false, {}}) {}
  explicit CpuDevice(const CpuDeviceOptions &options);
  ~CpuDevice() override;

  unsigned threads() const { return threadCount; }

  void prepare(uint16_t streams, uint32_t events) override;
  void requireTarget(std::string_view target) const override;
  DeviceAddress allocate(uint64_t bytes, std::string_view what) override;
  void free(DeviceAddress address, uint64_t bytes) override;
  void upload(DeviceAddress to, const void *from, uint64_t bytes) override;
  void download(void *to, DeviceAddress from, uint64_t bytes) override;
  std::unique_ptr<LoadedKernel> loadKernel(const KernelImage &image) override;
  void launch(const LoadedKernel &kernel, const LaunchArg *args,
              uint32_t argCount, int64_t grid, uint16_t stream) override;
  void gemm(const GemmCall &call, uint16_t stream) override;
  void copy(DeviceAddress to, DeviceAddress from, int64_t bytes,
            uint16_t stream) override;
  void fill(DeviceAddress to, uint8_t value, int64_t bytes,
            uint16_t stream) override;
  void record(uint32_t event, uint16_t stream) override;
  void wait(uint32_t event, uint16_t stream) override;
  void hostCall(std::function<void()> task, uint16_t stream) override;
  void synchronize() override;

private:
  /// Threads that work of a stream may use.
  unsigned threadsOf(uint16_t stream) const {
    return stream == 0 ? threadCount : 1;
  }

  unsigned threadCount;
  bool deterministic;
  StreamDelays delays;
  std::unique_ptr<ObjectLoader> loader;
  /// Only the first until prepare(). Ends before the code it may be executing.
  std::unique_ptr<Streams> streams;
};

} // namespace fsdpq::rt
