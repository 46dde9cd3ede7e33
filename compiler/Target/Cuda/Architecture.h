//===- Architecture.h - GPUs that kernels are made for ----------*- C++ -*-===//
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fsdpq::cuda {

/// A GPU architecture as NVRTC names it, with its limits.
struct Architecture {
  std::string name; ///< "sm_90a"
  int capability;   ///< 90

  /// Dynamic shared memory that a block may ask for, in bytes.
  unsigned maxSharedBytes() const;
  /// wgmma, TMA and setmaxnreg: sm_90a only.
  bool hasWarpgroupProducts() const { return name == "sm_90a"; }
  unsigned maxRegistersPerThread() const { return 255; }

  /// "sm_80" to "sm_120a"; nothing if the name is unknown. sm_90 means sm_90a.
  static std::optional<Architecture> parse(std::string_view name);
  /// "sm_80, sm_86, ...": what parse() knows, for messages.
  static std::string knownNames();
};

} // namespace fsdpq::cuda
