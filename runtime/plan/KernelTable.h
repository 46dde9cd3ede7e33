//===- KernelTable.h - What a plan's kernels need ---------------*- C++ -*-===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <string>

namespace fsdpq::rt {

/// A line of words for each kernel, below a line of headings: name and entry;
/// threads of a block, registers of a thread, bytes that a thread spills, bytes of
/// shared memory of a block (static and dynamic), all "-" where they are not known
/// (of the CPU, or without code); bytes of code.
std::string kernelTable(const plan::Plan &plan);

} // namespace fsdpq::rt
