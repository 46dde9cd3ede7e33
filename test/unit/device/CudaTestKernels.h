//===- CudaTestKernels.h - Kernels of the tests for GPUs --------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::test {

/// The kernel of TestKernels.cpp as CUDA text; "" if there is none of that name.
std::string cudaText(const std::string &symbol);

/// How a kernel of the tests is started: 128 threads, an item each, with the
/// tensor maps. Lives as long as the program.
const plan::LaunchShape *
launchShape(uint32_t sharedBytes = 0, uint32_t blocksPerProcessor = 0,
            const std::vector<plan::TensorMap> &maps = {});

} // namespace fsdpq::test
