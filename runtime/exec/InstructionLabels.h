//===- InstructionLabels.h - Instructions in a trace ------------*- C++ -*-===//
#pragma once

#include "runtime/observe/Trace.h"
#include "runtime/plan/plan_generated.h"

#include <vector>

namespace fsdpq::rt {

/// Work, Communication or Wait.
Trace::Kind traceKind(plan::Op op);

/// Of each instruction of the function, in text order, loops counted: a
/// kernel's name, "gemm", "all_gather layers" (the unit whose parameters or
/// gradients move, or the slice they come from), "copy loss" (the slice it goes
/// to), "wait"; the bytes that a collective brings to this rank.
std::vector<Trace::Label> instructionLabels(const plan::Plan &plan,
                                            const plan::Function &function);

} // namespace fsdpq::rt
