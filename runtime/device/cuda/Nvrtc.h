//===- Nvrtc.h - CUDA text to machine code ----------------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::rt {

struct NvrtcResult {
  bool succeeded = false;
  std::vector<uint8_t> cubin;
  std::string log; ///< errors, or what ptxas says of registers and spills
};

/// NVRTC's version, "13.0". Error 4040 if there is no NVRTC.
std::string nvrtcVersion();

/// Options besides the architecture; part of what a cubin depends on.
const std::vector<std::string> &nvrtcOptions();

/// Compiles `text` for `architecture` (sm_90a). `name` stands in the log. May be
/// called by several threads.
NvrtcResult compileCuda(const std::string &text, const std::string &name,
                        const std::string &architecture);

} // namespace fsdpq::rt
