//===- LibraryVersions.h - Which of NVIDIA's libraries are here -*- C++ -*-===//
#pragma once

#include "runtime/device/cuda/SharedLibrary.h"

namespace fsdpq::rt {

/// What a library that can be loaded says of itself: "13.0" (for the driver: the
/// newest CUDA that it can run), "13.2.1". Error 4040 or 4041.
std::string versionOf(CudaLibrary which);

} // namespace fsdpq::rt
