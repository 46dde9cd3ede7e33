//===- CudaDevice.h - One GPU as a device -----------------------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"

#include <exception>
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
  uint64_t totalBytes;
  /// Known of a GPU that is in use by this process (CudaDevice::info()); of
  /// others 0, for asking costs a context there.
  uint64_t freeBytes;
};

/// The visible GPUs. Empty, with the reason in `why`, where there is no driver or
/// no GPU. Throws nothing.
std::vector<GpuInfo> findGpus(std::string &why);

/// Whether GPU `from` can read and write the memory of GPU `to` directly.
bool canAccessPeer(int from, int to);

/// A GPU, its own CUDA context's worth of streams and events, and cuBLASLt for
/// GEMMs. Kernels are cubins. All work is asynchronous; failures of the GPU appear
/// in a later call (Error 4050, RunFailure), after which nothing runs any more; what
/// had been given before one was known runs on, but for tasks of the host. Out of
/// memory is Error 4002.
///
/// Stream 0 computes; the others, which bring data, go before it where both have
/// work. With FSDPQ_SYNC_LAUNCH=1 in the environment each kernel, GEMM, copy and
/// fill is waited for, so that an Error names the one that failed.
class CudaDevice final : public Device {
public:
  /// Error 4042 if there is no such GPU, 4040 or 4041 without a driver.
  explicit CudaDevice(int ordinal);
  ~CudaDevice() override;

  /// As it was before this device took any memory.
  const GpuInfo &info() const;
  /// The driver's CUstream of a plan's stream (prepare() comes first).
  void *stream(uint16_t number) const;
  /// Makes the GPU's context the calling thread's.
  void makeCurrent() const;
  /// Bytes in use on this GPU by all processes, as the driver counts them.
  uint64_t usedBytes() const;

  /// Ends the work of this device: calls throw `cause` from now on, and tasks of
  /// the host that wait are dropped. By any thread. The first cause stays.
  void fail(std::exception_ptr cause);
  /// Throws what has ended the work, if anything has.
  void check() const;

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
  void stamp(UseTime use, uint16_t stream) override;
  void synchronize() override;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace fsdpq::rt
