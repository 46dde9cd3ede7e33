//===- Skeletons.h - Kernels with hand-written texts ------------*- C++ -*-===//
#pragma once

#include "compiler/Target/Cuda/Architecture.h"
#include "compiler/Target/Cuda/KernelText.h"
#include "dialects/Kern/Kern.h"

namespace fsdpq::cuda {

/// The name of the skeleton for `kernel`, as `family` of its emission. Nothing
/// if there is none; then `reason` says why if the kernel has a hint.
std::optional<std::string> chooseSkeleton(kern::FuncOp kernel,
                                          const Architecture &architecture,
                                          std::string &reason);

/// Whether a family of this name is a skeleton.
bool isSkeleton(StringRef name);

/// The text of a skeleton that was chosen; nothing if the kernel's hint does
/// not ask for one of this name.
std::optional<KernelText> emitSkeleton(kern::FuncOp kernel, StringRef name,
                                       const Architecture &architecture);

} // namespace fsdpq::cuda
