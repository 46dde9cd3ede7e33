//===- ToyRanks.h - The toy model on several ranks --------------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/exec/Executor.h"
#include "runtime/support/Error.h"
#include "test/unit/train/ToyModel.h"

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace fsdpq::test {

/// How a run ended on one rank. Of one that succeeded `id` is 0.
struct RankEnd {
  int id = 0;
  rt::ExitCode code = rt::ExitCode::Success;
  std::string message;
};

/// Calls `action` on each of `ranks` threads; a rank that throws an Error
/// aborts the others, as a process of a run does.
std::vector<RankEnd>
onRanks(int64_t ranks, const std::function<void(rt::Communicator &)> &action);

/// The world sizes and cuts that the toy model is run with.
struct ToyMesh {
  uint32_t ranks, shards;
};
inline constexpr ToyMesh toyMeshes[] = {{1, 1}, {2, 1}, {2, 2},
                                        {3, 1}, {3, 3}, {4, 2}};
inline std::ostream &operator<<(std::ostream &stream, const ToyMesh &mesh) {
  return stream << mesh.ranks << " ranks, " << mesh.shards << " shards";
}

/// Changes the toy model of a rank.
using ToyChange =
    std::function<void(PlanBuilder &, FunctionDevice &, int64_t rank)>;

/// Calls `action` on each rank of the toy model, after `change` made of it what
/// the test needs.
std::vector<RankEnd>
onToyRanks(const ToyMesh &mesh,
           const std::function<void(rt::Executor &)> &action,
           const ToyChange &change = {});

/// A test failure for each rank that did not succeed.
void expectSuccess(const std::vector<RankEnd> &ends);

/// The plan's parameter number `number`.
inline const plan::Parameter &parameterOf(const rt::Executor &executor,
                                          uint32_t number) {
  return *executor.plan().plan().parameters()->Get(number);
}

} // namespace fsdpq::test
