//===- Commands.h - What fsdpq-run can do -----------------------*- C++ -*-===//
//
// Each returns the exit code, or throws what the caller reports.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/fsdpq-run/options/CommandLine.h"

namespace fsdpq::run {

int runTrain(const CommandLine &line);
int runPlan(const CommandLine &line);
int runEval(const CommandLine &line);
int runGenerate(const CommandLine &line);
int runDoctor(const CommandLine &line);

} // namespace fsdpq::run
