//===- PlanSource.h - The plan of a run, compiled or read -------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/plan/PlanFile.h"
#include "tools/fsdpq-run/ModelInput.h"
#include "tools/fsdpq-run/options/Settings.h"

#include <memory>

namespace fsdpq::run {

/// --plan's file, or what the compiler makes of the model; its diagnostics go
/// to the standard error. All ranks call this: rank 0 reads or compiles, and
/// gives the others the plan's bytes. Null when --compile_to ended the
/// compilation: the IR is then printed. Throws Error 6020 (BadInput) if the
/// model cannot be compiled, 6023 if there are no architectures, 6028 if the
/// plan of --plan is for another command, other adapters, smaller micro-batches
/// or another number of ranks, and 6056 (DoesNotFit), save for the command
/// plan, if it needs more than --memory_budget.
std::shared_ptr<const rt::LoadedPlan>
obtainPlan(const Settings &settings, const ModelInput &model,
           rt::Communicator &communicator);

/// Error 6056 if the plan needs more than --memory_budget.
void requireBudget(const Settings &settings, const rt::LoadedPlan &plan);

/// The most tokens that a micro-batch of the plan may have.
int64_t tokenCapacity(const rt::LoadedPlan &plan);

} // namespace fsdpq::run
