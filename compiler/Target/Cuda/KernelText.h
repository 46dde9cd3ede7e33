//===- KernelText.h - CUDA text of a kernel and how to start it -*- C++ -*-===//
//
// What emission gives and NVRTC takes: no MLIR in this header.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::cuda {

/// A view of a memref argument for the tensor memory accelerator; see TensorMap
/// in runtime/plan/plan.fbs.
struct TensorMap {
  unsigned argument;
  unsigned boxColumns, boxRows;
  int64_t begin, columns, pitch; ///< in elements

  bool operator==(const TensorMap &) const = default;
};

/// How a kernel is started: ceil(items / itemsPerBlock) blocks, at most
/// blocksPerProcessor (if not 0) times the multiprocessors. See LaunchShape in
/// runtime/plan/plan.fbs.
struct LaunchShape {
  unsigned threads = 0;
  unsigned sharedBytes = 0; ///< dynamic; above 48 KiB the runtime opts in
  int64_t itemsPerBlock = 1;
  unsigned blocksPerProcessor = 0;
  std::vector<TensorMap> maps;

  bool operator==(const LaunchShape &) const = default;
};

/// One translation unit with one kernel. The text includes no headers. Parameters
/// of `symbol`: a pointer for each memref, a long long for each i64, a double for
/// each f64 of the kern.func in order, then `long long items` (the number of work
/// items of the grid), then the tensor maps.
struct KernelText {
  std::string symbol;
  std::string text;
  LaunchShape launch;
};

} // namespace fsdpq::cuda
