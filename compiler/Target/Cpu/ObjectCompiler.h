//===- ObjectCompiler.h - Kernels to relocatable objects --------*- C++ -*-===//
#pragma once

#include "dialects/Kern/Kern.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::cpu {

/// The CPU that objects are made for, in LLVM's words.
struct TargetMachineOptions {
  std::string cpu;      ///< "sapphirerapids"
  std::string features; ///< "+avx512f,-amx-fp8,..."

  /// The CPU this process runs on.
  static TargetMachineOptions host();
};

struct CompiledKernel {
  std::string name;            ///< of the kern.func
  std::string symbol;          ///< of the object's entry, equal to the name
  std::string hash;            ///< SHA-256 of text, target and compiler
  std::string text;            ///< the kern.func, printed
  std::vector<uint8_t> object; ///< relocatable, position independent ELF
  bool fromCache;
};

/// Compiles each of `kernels`, all of different names, to an object with one
/// entry of the ABI that runtime/plan/plan.fbs describes. Objects need no
/// symbols but those of libm, memcpy and memset.
///
/// `cacheDir`: folder of content-addressed objects, made (mode 0700) if absent;
/// empty for none. A cache that cannot be read or written costs time only.
/// `threads`: how many kernels are compiled at a time, 0 for one a core.
///
/// The order of the results is that of `kernels`. Fails after an error on each
/// kernel that cannot be compiled.
FailureOr<std::vector<CompiledKernel>>
compileKernels(ArrayRef<kern::FuncOp> kernels,
               const TargetMachineOptions &target, StringRef cacheDir,
               unsigned threads);

} // namespace fsdpq::cpu
