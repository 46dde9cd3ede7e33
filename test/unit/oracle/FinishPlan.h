//===- FinishPlan.h - From the kernel phase's IR to a plan ------*- C++ -*-===//
#pragma once

#include "compiler/Pipelines/Compile.h"

namespace fsdpq::test {

/// Goes on from `ir`, the text after the kernel phase (CompileOptions::
/// compileTo = "kernel"), which a test may have changed.
CompileResult finishPlan(const std::string &ir, const CompileOptions &options);

} // namespace fsdpq::test
