//===- EmulatedGrid.h - Runs the blocks of a kernel on the CPU --*- C++ -*-===//
#pragma once

#include "test/unit/cuda/EmulatorServices.h"

#include <string>
#include <vector>

namespace fsdpq::test {

/// The table for images to be loaded with.
extern const EmulatorServices emulatorServices;

struct EmulatedGrid {
  const EmulatedImage &image;
  unsigned blocks, threads, sharedBytes;
  /// Blocks, warps and lanes run from the last to the first.
  bool descending;
  std::vector<void *> arguments; ///< one for each letter of image.parameters
};

/// Runs the blocks one after the other; within a block each warp runs until all
/// its lanes are at a barrier of the block or have ended, then the next one.
/// Shared memory is filled with garbage before each block. Gives what went wrong,
/// or "": barriers and warp operations that not all threads reach, accesses
/// outside of dynamic shared memory, addresses without memory, and what the image
/// reports by `fail`. One call at a time in the process.
std::string runGrid(const EmulatedGrid &grid);

} // namespace fsdpq::test
