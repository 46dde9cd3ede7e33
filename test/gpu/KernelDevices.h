//===- KernelDevices.h - One kernel on the CPU, on the GPU ------*- C++ -*-===//
#pragma once

#include "compiler/Target/Cpu/ObjectCompiler.h"
#include "compiler/Target/Cuda/KernelCompiler.h"
#include "test/gpu/KernelCases.h"

#include <memory>
#include <string>
#include <vector>

namespace fsdpq::test {

class HostRunner {
public:
  HostRunner();
  ~HostRunner();
  /// `arrays` are the kernel's, in place.
  void run(const cpu::CompiledKernel &kernel, const Case &checked,
           std::vector<std::vector<uint8_t>> &arrays);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

class GpuRunner {
public:
  GpuRunner();
  ~GpuRunner();
  std::string architecture() const;
  /// Gives what went wrong, bytes written beside an array among it, or "".
  std::string run(const cuda::CompiledKernel &kernel, const Case &checked,
                  std::vector<std::vector<uint8_t>> &arrays);
  /// Median time of a launch on arrays that lie in no cache.
  double seconds(const cuda::CompiledKernel &kernel, const Case &checked,
                 const std::vector<std::vector<uint8_t>> &arrays);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace fsdpq::test
