//===- KernelCompiler.h - Kernels to cubins ---------------------*- C++ -*-===//
#pragma once

#include "compiler/Target/Cuda/Architecture.h"
#include "compiler/Target/Cuda/KernelText.h"
#include "compiler/Target/Cuda/Resources.h"
#include "dialects/Kern/Kern.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::cuda {

struct CompiledKernel {
  std::string name;   ///< of the kern.func
  std::string symbol;
  std::string hash;   ///< SHA-256 of text, options, NVRTC version, architecture
  std::string text;   ///< CUDA
  LaunchShape launch;
  std::vector<uint8_t> cubin;
  Resources resources;
  bool fromCache = false;
};

struct KernelCompilerOptions {
  std::string cacheDir;    ///< content-addressed cubins; made (0700); empty: none
  std::string dumpDir;     ///< <name>.cu of each kernel is written here; empty: none
  std::string overrideDir; ///< <name>.cu here replaces the emitted text; empty: none
  unsigned threads = 0;    ///< kernels compiled at a time; 0: one a core
  /// False: texts and launch shapes only, which takes no NVRTC; hashes, cubins
  /// and resources stay empty.
  bool cubins = true;
};

/// Emits (see Emission.h) and compiles each of `kernels`, all prepared and of
/// different names; results in their order. Fails after an error on each kernel
/// that cannot be compiled, with NVRTC's log at the kernel's location, or that
/// cannot be launched on the architecture (FSDPQ-0520 registers, 0521 shared memory, 0522
/// threads), or after one error where there is no NVRTC (0525) or a folder cannot
/// be used (0526, 0527). Lost performance is a warning. A cache that cannot be read
/// or written costs time only.
FailureOr<std::vector<CompiledKernel>>
compileKernels(ArrayRef<kern::FuncOp> kernels, const Architecture &,
               const KernelCompilerOptions &);

} // namespace fsdpq::cuda
