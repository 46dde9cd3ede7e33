//===- CudaKernel.h - A cubin on a GPU --------------------------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Allocations.h"
#include "runtime/device/cuda/DriverApi.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace fsdpq::rt {

/// A kernel's module, and how it is started (see Kernel in plan.fbs).
class CudaKernel final : public LoadedKernel {
public:
  /// The context is current. Error 4003.
  CudaKernel(const DriverApi &driver, const KernelImage &image, int processors,
             const std::string &architecture);
  ~CudaKernel() override;
  CudaKernel(const CudaKernel &) = delete;
  CudaKernel &operator=(const CudaKernel &) = delete;

  const std::string &name() const { return name_; }

  /// Error 4008 if the arguments are not those of the code.
  void launch(const LaunchArg *args, uint32_t argCount, int64_t grid,
              const Allocations &allocations, CUstream stream) const;

private:
  struct Map {
    plan::TensorMap shape;
    /// By address. An address has one size as long as allocations stay.
    std::unordered_map<DeviceAddress, CUtensorMap> encoded;
  };

  [[noreturn]] void refuse(int id, const std::string &what,
                           const std::string &hint = "") const;
  void load(const KernelImage &image, const std::string &architecture);
  void setUp(const plan::LaunchShape &shape);
  void countParameters();
  CUtensorMap *tensorMap(Map &map, const LaunchArg *args, uint32_t argCount,
                         const Allocations &allocations) const;
  CUtensorMap encode(const plan::TensorMap &shape, DeviceAddress address,
                     uint64_t bytes) const;

  const DriverApi &driver;
  std::string name_;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  unsigned threads = 0, sharedBytes = 0;
  int64_t itemsPerBlock = 1;
  int64_t mostBlocks = 0; ///< 0: any number
  size_t parameters = 0;  ///< of the code
  mutable std::vector<Map> maps;
  mutable uint64_t generation = 0; ///< of the allocations that `maps` know
};

} // namespace fsdpq::rt
