//===- Gpus.h - What a GPU says of itself -----------------------*- C++ -*-===//
#pragma once

#include "runtime/device/cuda/CudaDevice.h"

namespace fsdpq::rt {

struct DriverApi;

/// "sm_86", "sm_90a": what kernels are compiled for.
std::string architectureName(int major, int minor);

/// All but the free bytes. Error 4050 if there is no such GPU.
GpuInfo describeGpu(const DriverApi &driver, int ordinal);

} // namespace fsdpq::rt
