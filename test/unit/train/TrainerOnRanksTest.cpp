#include "runtime/train/Trainer.h"

#include "runtime/train/Evaluator.h"
#include "runtime/train/Parameters.h"
#include "test/unit/train/ToyRanks.h"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::HasSubstr;

namespace {

/// Rows of different lengths, some without labels.
std::vector<Row> mixedRows(int64_t count) {
  std::vector<std::vector<int32_t>> targets;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> &row = targets.emplace_back();
    for (int64_t t = 0; t < i * 5 % 7; ++t)
      row.push_back(static_cast<int32_t>((i * 3 + t * t) % toyVocabulary));
  }
  return rowsOf(targets);
}

/// What one rank saw of a run.
struct Seen {
  std::vector<double> numbers;
  std::vector<float> weights;
  bool operator==(const Seen &) const = default;
};

/// Trains three steps of 12 micro-batches; the same on all ranks.
Seen trainOn(const ToyMesh &mesh, LossAverage average, bool shuffle) {
  const std::vector<Row> rows = mixedRows(40);
  TrainerOptions options = inOrder(12 / mesh.ranks);
  options.batches.shuffle = shuffle;
  options.lossAverage = average;
  options.lr = 0.3;
  options.maxGradNorm = 3;
  std::vector<Seen> seen(mesh.ranks);
  expectSuccess(onToyRanks(mesh, [&](Executor &executor) {
    Seen &mine = seen[static_cast<size_t>(executor.communicator().rank())];
    Trainer trainer(executor, rows, options);
    trainer.run(
        [&](const StepRecord &r) {
          for (const double number : {r.loss, r.gradNorm, r.lr, r.epoch,
                                      static_cast<double>(r.tokens),
                                      static_cast<double>(r.labelledTokens)})
            mine.numbers.push_back(number);
        },
        [] { return false; });
    for (int64_t i : {0, 1})
      mine.weights.push_back(
          readParameter(executor, parameterOf(executor, 1), i)[0]);
  }));
  for (const Seen &other : seen)
    EXPECT_EQ(other, seen.front()) << mesh;
  return seen.front();
}

} // namespace

TEST(TrainerOnRanks, ResultsDoNotDependOnTheRanks) {
  for (const LossAverage average : {LossAverage::Batch, LossAverage::Token})
    for (const bool shuffle : {false, true}) {
      const Seen one = trainOn({1, 1}, average, shuffle);
      ASSERT_EQ(one.numbers.size(), 3u * 6);
      EXPECT_NE(one.weights[0], 0);
      EXPECT_NE(one.numbers[6], one.numbers[0]);
      for (const ToyMesh &mesh : toyMeshes)
        EXPECT_EQ(trainOn(mesh, average, shuffle), one) << mesh;
    }
}

// Both w are 0: a token with target y loses 2 y^2.
TEST(TrainerOnRanks, LossAverages) {
  const auto rows = rowsOf({{2}, {4, 4, 4}});
  for (const auto &[average, loss, gradient] :
       {std::tuple(LossAverage::Batch, 2 * (4 + 16) / 2., 2 * (2 + 4) / 2.f),
        {LossAverage::Token, 2 * (4 + 3 * 16) / 4., 2 * (2 + 3 * 4) / 4.f}})
    expectSuccess(onToyRanks({2, 2}, [&](Executor &executor) {
      TrainerOptions options = inOrder(1);
      options.lossAverage = average;
      Trainer(executor, rows, options)
          .run(
              [&](const StepRecord &record) {
                EXPECT_EQ(record.loss, loss);
                EXPECT_EQ(record.tokens, 6);
                EXPECT_EQ(record.labelledTokens, 4);
              },
              [] { return false; });
      EXPECT_EQ(readParameter(executor, parameterOf(executor, 1), 1)[0],
                0.125f * gradient);
    }));
}

TEST(TrainerOnRanks, ARankWithoutLabels) {
  for (const LossAverage average : {LossAverage::Batch, LossAverage::Token})
    expectSuccess(onToyRanks({3, 3}, [&](Executor &executor) {
      TrainerOptions options = inOrder(1);
      options.lossAverage = average;
      Trainer(executor, rowsOf({{}, {3}, {}}), options)
          .run(
              [&](const StepRecord &record) {
                EXPECT_EQ(record.loss, average == LossAverage::Token
                                           ? 2 * 9
                                           : 2 * 9 * float(1 / 3.));
              },
              [] { return false; });
    }));
}

/// The loss of target 7 is infinite.
static void breakSeven(PlanBuilder &, FunctionDevice &device, int64_t) {
  const auto micro = device.functions["micro"];
  device.functions["micro"] = [micro](const rt::LaunchArg *args) {
    micro(args);
    const auto *targets = reinterpret_cast<const int32_t *>(args[3].address);
    if (args[4].integer > 0 && targets[0] == 7)
      *reinterpret_cast<float *>(args[2].address) =
          std::numeric_limits<float>::infinity();
  };
}

TEST(TrainerOnRanks, NonFiniteLossIsNamedOnAllRanks) {
  // Micro-batch 4 of a step is rank 1's second of three.
  const auto rows =
      rowsOf({{1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {7}, {1}});
  const auto ends = onToyRanks(
      {3, 3},
      [&](Executor &executor) {
        int64_t steps = 0;
        Trainer trainer(executor, rows, inOrder(2));
        try {
          trainer.run([&](const StepRecord &) { ++steps; },
                      [] { return false; });
        } catch (const Error &) {
          EXPECT_EQ(steps, 1);
          throw;
        }
      },
      breakSeven);
  for (const RankEnd &end : ends) {
    EXPECT_EQ(end.id, 5020);
    EXPECT_EQ(end.code, ExitCode::NonFiniteLoss);
    EXPECT_THAT(end.message, HasSubstr("the loss is inf at step 2, "
                                       "micro-step 2, on rank 1"));
  }
}

TEST(TrainerOnRanks, ASignalOfOneRankStopsAll) {
  const auto rows = mixedRows(40);
  std::atomic<int> stopped = 0;
  expectSuccess(onToyRanks({3, 3}, [&](Executor &executor) {
    int64_t done = 0;
    const bool signalled = executor.communicator().rank() == 1;
    const TrainingResult result =
        Trainer(executor, rows, inOrder(2))
            .run([&](const StepRecord &record) { done = record.step; },
                 [&] { return signalled && done == 1; });
    EXPECT_EQ(result.steps, 2);
    EXPECT_EQ(done, 2);
    stopped += result.stopped;
  }));
  EXPECT_EQ(stopped, 3);
}

TEST(TrainerOnRanks, ARankThatFailsStopsTheOthers) {
  const auto rows = mixedRows(40);
  const auto ends = onToyRanks({3, 3}, [&](Executor &executor) {
    Trainer(executor, rows, inOrder(2))
        .run(
            [&](const StepRecord &) {
              if (executor.communicator().rank() == 1)
                throw Error(1301, ExitCode::RunFailure, "the disk is full");
            },
            [] { return false; });
  });
  EXPECT_EQ(ends[1].id, 1301);
  for (const size_t rank : {0, 2}) {
    EXPECT_EQ(ends[rank].id, 7003);
    EXPECT_EQ(ends[rank].code, ExitCode::PeerFailure);
    EXPECT_THAT(ends[rank].message, HasSubstr("the disk is full"));
  }
}

TEST(EvaluatorOnRanks, ResultsDoNotDependOnTheRanks) {
  for (const int64_t count : {1, 7, 23}) {
    // A last micro-batch that is short, ranks that have none, rows without
    // labels.
    const auto rows = mixedRows(count + 1);
    EvaluationRecord one;
    for (const ToyMesh &mesh : toyMeshes)
      expectSuccess(onToyRanks(mesh, [&](Executor &executor) {
        for (int64_t i : {0, 1}) {
          const float w = 0.3f + static_cast<float>(i);
          writeParameter(executor, parameterOf(executor, 1), i, &w);
        }
        int64_t done = 0;
        const EvaluationRecord result =
            evaluate(executor, rows, /*batchSize=*/3, /*contextLength=*/16,
                     [&](int64_t rowsDone) {
                       EXPECT_GT(rowsDone, done);
                       done = rowsDone;
                     });
        EXPECT_EQ(done, count + 1);
        if (mesh.ranks == 1)
          one = result;
        EXPECT_EQ(result.loss, one.loss) << mesh;
        EXPECT_EQ(result.labelledTokens, one.labelledTokens) << mesh;
      }));
    EXPECT_GT(one.loss, 0);
  }
}

TEST(EvaluatorOnRanks, NonFiniteLossIsNamedOnAllRanks) {
  const auto ends = onToyRanks(
      {2, 2},
      [&](Executor &executor) {
        evaluate(executor, rowsOf({{1}, {1}, {1}, {1}, {7}, {1}, {1}}), 2, 16);
      },
      [](PlanBuilder &b, FunctionDevice &device, int64_t rank) {
        device.functions["micro"] = device.functions["eval"];
        breakSeven(b, device, rank);
        device.functions["eval"] = device.functions["micro"];
      });
  for (const RankEnd &end : ends) {
    EXPECT_EQ(end.id, 5020);
    EXPECT_THAT(end.message, HasSubstr("the loss of rows 5 to 6 is inf"));
  }
}
