#include "test/unit/train/ToyRanks.h"

#include "runtime/comm/inprocess/InProcess.h"

#include <chrono>
#include <gtest/gtest.h>
#include <thread>

namespace fsdpq::test {

using namespace fsdpq::rt;

/// Tells the other ranks what ended `action`.
static void abortingOnError(Communicator &communicator,
                            const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    communicator.abort(error.what());
    throw;
  }
}

std::vector<RankEnd>
onRanks(int64_t ranks, const std::function<void(Communicator &)> &action) {
  const auto communicators = makeInProcessRanks(ranks, std::chrono::seconds(5));
  std::vector<RankEnd> ends(static_cast<size_t>(ranks));
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < ends.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        abortingOnError(*communicators[rank],
                        [&] { action(*communicators[rank]); });
      } catch (const Error &error) {
        ends[rank] = {error.id(), error.exitCode(), error.what()};
      }
    });
  threads.clear();
  return ends;
}

std::vector<RankEnd> onToyRanks(const ToyMesh &mesh,
                                const std::function<void(Executor &)> &action,
                                const ToyChange &change) {
  return onRanks(mesh.ranks, [&](Communicator &communicator) {
    FunctionDevice device;
    PlanBuilder builder = toyModel(device, mesh.ranks, mesh.shards);
    if (change)
      change(builder, device, communicator.rank());
    Executor executor(builder.load(), device, communicator);
    // Said while the executor lives, which knows no cause.
    abortingOnError(communicator, [&] { action(executor); });
  });
}

void expectSuccess(const std::vector<RankEnd> &ends) {
  for (size_t rank = 0; rank < ends.size(); ++rank)
    EXPECT_EQ(ends[rank].id, 0)
        << "rank " << rank << ": " << ends[rank].message;
}

} // namespace fsdpq::test
