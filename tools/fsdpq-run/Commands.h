//===- Commands.h - What fsdpq-run can do -----------------------*- C++ -*-===//
//
// Each returns the exit code, or throws what the caller reports. Those that
// take a communicator run on all ranks; see RankCommand.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "tools/fsdpq-run/options/CommandLine.h"
#include "tools/fsdpq-run/options/Settings.h"

namespace fsdpq::run {

int runPlan(const CommandLine &line);
int runDoctor(const CommandLine &line);

int runTrain(const CommandLine &line, Settings settings,
             rt::Communicator &communicator);
int runEval(const CommandLine &line, Settings settings,
            rt::Communicator &communicator);
int runGenerate(const CommandLine &line, Settings settings,
                rt::Communicator &communicator);

} // namespace fsdpq::run
