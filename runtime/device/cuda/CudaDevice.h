//===- CudaDevice.h - One GPU as a device -----------------------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"

#include <memory>
#include <string>
#include <vector>

namespace fsdpq::rt {

/// What is known of a GPU before it is used.
struct GpuInfo {
  int ordinal;
  std::string name;         ///< "NVIDIA H200"
  std::string architecture; ///< "sm_90a": what plans are made for
  int processors;           ///< multiprocessors
  uint64_t totalBytes, freeBytes;
};

/// The visible GPUs. Empty, with the reason in `why`, where there is no driver or
/// no GPU. Throws nothing.
std::vector<GpuInfo> findGpus(std::string &why);

/// A GPU, its own CUDA context's worth of streams and events, and cuBLASLt for
/// GEMMs. Kernels are cubins. All work is asynchronous; failures of the GPU appear
/// in a later call (Error 4050, RunFailure). Out of memory is Error 4002.
class CudaDevice final : public Device {
public:
  /// Error 4042 if there is no such GPU.
  explicit CudaDevice(int ordinal);
  ~CudaDevice() override;

  const GpuInfo &info() const;
  /// The driver's CUstream of a plan's stream (prepare() comes first).
  void *stream(uint16_t number) const;
  /// Makes the GPU's context the calling thread's.
  void makeCurrent() const;
  /// Bytes in use on this GPU by all processes, as the driver counts them.
  uint64_t usedBytes() const;

  void requireTarget(std::string_view target) const override;
  void prepare(uint16_t streams, uint32_t events) override;
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
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace fsdpq::rt
