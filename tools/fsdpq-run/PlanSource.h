//===- PlanSource.h - The plan of a run, compiled or read -------*- C++ -*-===//
#pragma once

#include "runtime/plan/PlanFile.h"
#include "tools/fsdpq-run/ModelInput.h"
#include "tools/fsdpq-run/options/Settings.h"

#include <memory>

namespace fsdpq::run {

/// --plan's file, or what the compiler makes of the model; its diagnostics go
/// to the standard error. Null when --compile_to ended the compilation: the IR
/// is then printed. Throws Error 6020 (BadInput) if the model cannot be
/// compiled, 6023 if there are no architectures, 6028 if the plan of --plan is
/// for another command, other adapters or smaller micro-batches.
std::shared_ptr<const rt::LoadedPlan> obtainPlan(const Settings &settings,
                                                 const ModelInput &model);

/// The most tokens that a micro-batch of the plan may have.
int64_t tokenCapacity(const rt::LoadedPlan &plan);

} // namespace fsdpq::run
