//===- CubinCompiler.h - CUDA texts to cubins -------------------*- C++ -*-===//
//
// No MLIR in this header.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Architecture.h"
#include "compiler/Target/Cuda/Resources.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::cuda {

struct CubinRequest {
  std::string name;   ///< stands in NVRTC's log: "rms_norm.cu"
  std::string symbol; ///< of the text's kernel
  std::string text;
};

struct Cubin {
  std::string hash; ///< SHA-256 of text, options, NVRTC version, architecture
  std::vector<uint8_t> code;
  Resources resources;
  bool fromCache = false;
  std::string error; ///< why there is no code: NVRTC's log, say; or empty
};

struct CubinResults {
  std::vector<Cubin> cubins; ///< in the order of the requests
  std::string error;         ///< why there are none: no NVRTC; or empty
};

/// Compiles all texts with NVRTC, equal ones once, or takes their code from
/// `cacheDir` (see CodeCache; empty: no cache). `threads`: how many at a time, 0
/// for one a core.
CubinResults compileCubins(const std::vector<CubinRequest> &requests,
                           const Architecture &architecture,
                           const std::string &cacheDir,
                           unsigned threads) noexcept;

} // namespace fsdpq::cuda
