//===- Resources.h - What a kernel needs of a multiprocessor ----*- C++ -*-===//
//
// No MLIR in this header.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Architecture.h"
#include "compiler/Target/Cuda/KernelText.h"

#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::cuda {

/// What ptxas says of a kernel.
struct Resources {
  unsigned registers = 0;         ///< of a thread, as it starts
  unsigned spillBytes = 0;        ///< stored and loaded again, of a thread
  unsigned staticSharedBytes = 0; ///< of a block
  std::vector<std::string> warnings; ///< lines on lost performance
};

/// What NVRTC's log (with --ptxas-options=-v) says of the kernel `symbol` and the
/// functions that it calls.
struct PtxasReport {
  std::vector<std::string> kernels; ///< all of the text, by symbol
  Resources resources;              ///< of `symbol`, if it is among them
};
PtxasReport readPtxasLog(std::string_view log, std::string_view symbol);

/// Why a kernel of these needs cannot be started on the architecture, with what to
/// do; one text for each reason, empty if it can. FSDPQ-0520 registers, 0521
/// shared memory, 0522 threads.
std::vector<std::string> checkLaunch(const LaunchShape &, const Resources &,
                                     const Architecture &);

} // namespace fsdpq::cuda
