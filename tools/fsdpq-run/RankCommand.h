//===- RankCommand.h - A command on the ranks of a run ----------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "tools/fsdpq-run/options/CommandLine.h"
#include "tools/fsdpq-run/options/Settings.h"

#include <functional>
#include <string>
#include <vector>

namespace fsdpq::run {

using RankCommand =
    std::function<int(const CommandLine &, Settings, rt::Communicator &)>;

/// Starts the ranks of this host, if that is asked of this process (see
/// RankSetup.h), and waits for them; else connects with the other ranks and
/// runs `command`, whose failure ends it on all. `words` are this process's
/// argv, `line` what they mean. Returns the exit code.
int runOnRanks(const std::vector<std::string> &words, const CommandLine &line,
               const RankCommand &command);

} // namespace fsdpq::run
