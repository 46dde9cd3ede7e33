//===- CpuDevice.h - The host's cores as a device ---------------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"

namespace fsdpq::rt {

class ObjectLoader;

/// Executes on the calling thread and OpenMP's, in call order whatever the
/// stream; every call is done on return. Kernels are relocatable ELF objects,
/// GEMMs oneDNN's (f32 only: for other types the compiler emits kernels).
/// Floating-point state is IEEE's default: subnormals are kept.
class CpuDevice final : public Device {
public:
  /// `threads` = 0 takes OpenMP's number (OMP_NUM_THREADS, else all cores).
  explicit CpuDevice(unsigned threads = 0);
  ~CpuDevice() override;

  unsigned threads() const { return threadCount; }

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
  void synchronize() override {}

private:
  unsigned threadCount;
  std::unique_ptr<ObjectLoader> loader;
};

} // namespace fsdpq::rt
