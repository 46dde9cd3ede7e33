//===- AddKernel.h - Adds one array to another on a GPU ---------*- C++ -*-===//
#pragma once

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/DriverApi.h"

namespace fsdpq::rt {

/// Adds what a collective has summed to what is there already. PTX, which every
/// driver compiles for its GPU: running a plan needs no compiler of its own.
class AddKernel {
public:
  /// Error 4003 if the driver does not take it.
  explicit AddKernel(CudaDevice &device);
  ~AddKernel();
  AddKernel(const AddKernel &) = delete;
  AddKernel &operator=(const AddKernel &) = delete;

  /// to[i] += from[i]
  void run(DeviceAddress to, DeviceAddress from, int64_t elements,
           plan::CommType type, CUstream stream) const;

private:
  CudaDevice &device;
  const DriverApi &driver;
  CUmodule module = nullptr;
  CUfunction functions[3] = {}; ///< by plan::CommType
};

} // namespace fsdpq::rt
