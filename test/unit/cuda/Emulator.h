//===- Emulator.h - Runs emitted CUDA texts on the CPU ----------*- C++ -*-===//
//
// Tests check the values of kernels with it where no GPU is. A text is compiled by
// the host's C++ compiler after EmulatorShim.h; see EmulatedGrid.h for how its
// threads run and EmulatorShim.h for which words of CUDA and which PTX helpers it
// may use. What it finds besides values: barriers that not all threads reach,
// shared memory used before it is written or copied, accesses outside of dynamic
// shared memory, of arrays with a length, and of GuardedBuffers, misaligned
// vectors (compiled by clang only where a member is named), signed overflow and
// wide shifts. What it does not find: races that both orders of the threads decide
// alike, and threads that spin for each other (the launch does not end).
//
// Tensor maps, wgmma and mbarriers are not emulated. Nothing here throws.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/KernelText.h"

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fsdpq::test {

/// An argument of a launch: a pointer into host memory, an i64 or an f64.
struct Argument {
  template <typename T>
  Argument(T *pointer) : letter('p'), bits(reinterpret_cast<uint64_t>(pointer)) {}
  template <std::integral T>
  Argument(T value) : letter('i'), bits(static_cast<uint64_t>(int64_t(value))) {}
  Argument(double value);

  char letter; ///< as in EmulatedImage::parameters
  uint64_t bits;
};

/// In which order blocks, and threads within a block, run. A kernel without races
/// gives the same bits in both. Garbage in shared memory differs too.
enum class Order { Ascending, Descending };

class EmulatedKernel {
public:
  /// Compiled objects are kept in the build tree by the hash of their source.
  static EmulatedKernel compile(const cuda::KernelText &kernel);

  /// What was wrong with the text, or "".
  const std::string &error() const { return error_; }

  /// Runs the kernel as LaunchShape says for `items` and that many processors.
  /// `args`: those of the kern.func in order, without items. Gives what went
  /// wrong, or "": EXPECT_EQ(kernel.launch({x, y}, rows), "").
  [[nodiscard]] std::string launch(const std::vector<Argument> &args, int64_t items,
                                   unsigned processors = 3,
                                   Order order = Order::Ascending) const;

private:
  struct Loaded;

  cuda::KernelText kernel;
  std::shared_ptr<const Loaded> loaded; ///< null if there is an error
  std::string error_;
};

} // namespace fsdpq::test
