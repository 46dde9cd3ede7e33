//===- RunTogether.h - What all ranks do, or none goes on -------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"

#include <functional>
#include <string_view>

namespace fsdpq::run {

/// Thrown on a rank whose failure another rank reports.
struct ReportedElsewhere {
  int exitCode;
};

/// All ranks call this: each calls `action`, and all learn how it ended. If it
/// failed on any rank, all throw: the lowest of those with the same failure
/// what `action` threw, the others ReportedElsewhere (with the exit code of
/// their own failure, else with PeerFailure). `what` names the action in
/// messages.
void runTogether(rt::Communicator &communicator, std::string_view what,
                 const std::function<void()> &action);

} // namespace fsdpq::run
