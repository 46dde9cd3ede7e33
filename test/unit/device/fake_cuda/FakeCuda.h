//===- FakeCuda.h - A GPU made of host memory -------------------*- C++ -*-===//
//
// A shared library in place of the CUDA driver and of cuBLASLt, as far as
// CudaDevice calls them: streams are threads, memory is the host's, kernels are
// C++ functions of this library, products are loops. What was called with what is
// kept for tests, which find it through fsdpqFakeCuda().
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace fsdpq::fake {

struct Launch {
  std::string kernel;
  unsigned blocks, threads, sharedBytes;
  std::vector<uint64_t> values; ///< of the arguments and the number of items
  std::vector<uint64_t> maps;   ///< numbers of `State::maps`
};

/// What a tensor map was encoded from.
struct Map {
  uint64_t address;
  std::vector<uint64_t> extents, pitches;
  std::vector<uint32_t> box;
  int swizzle, type;
};

struct Product {
  int algorithm; ///< of those that were proposed, from 1
  int64_t rows, columns;
  void *workspace;
  uint64_t workspaceBytes;
};

struct State {
  std::mutex mutex; ///< guards all of it

  // What was seen.
  std::vector<Launch> launches;
  std::vector<Map> maps;
  std::vector<Product> products;
  int heuristics = 0; ///< times that algorithms were asked for
  std::map<std::string, uint64_t> preferences; ///< of the latest time
  std::vector<int> priorities; ///< of streams, as they were made
  uint64_t bytesInUse = 0;
  int modules = 0, streams = 0, events = 0, contexts = 0; ///< that are there

  // What shall happen.
  std::string failingKernel; ///< whose launch ends the context, later
  bool isBroken = false;     ///< the context has ended
  uint64_t memory = uint64_t(8) << 30;
};

/// The code of a kernel for this GPU: what CudaDevice loads as a cubin. Known
/// symbols (count_visits, scale_shift) do what they do in TestKernels.cpp, others
/// nothing.
std::vector<uint8_t> makeCode(const std::string &symbol, uint32_t arguments,
                              uint32_t maps = 0, uint32_t architecture = 90);

} // namespace fsdpq::fake

extern "C" fsdpq::fake::State *fsdpqFakeCuda();
