#include "runtime/train/Trainer.h"

#include "runtime/comm/Solo.h"
#include "runtime/support/Error.h"
#include "runtime/train/Evaluator.h"
#include "runtime/train/MicroStep.h"
#include "runtime/train/Parameters.h"
#include "runtime/train/StopSignals.h"
#include "test/unit/io/TestFiles.h"
#include "test/unit/train/ToyRanks.h"

#include <cmath>
#include <csignal>
#include <thread>
#include <unistd.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using namespace fsdpq::test;

namespace {

class ToyTraining : public testing::Test {
protected:
  FunctionDevice device;
  PlanBuilder builder = toyModel(device);
  std::unique_ptr<Communicator> solo = makeSolo();
  std::unique_ptr<Executor> executor =
      std::make_unique<Executor>(builder.load(), device, *solo);

  float weight() {
    return readParameter(*executor, parameterOf(*executor, 1), 0)[0];
  }
  std::vector<StepRecord> records;
  TrainingResult train(const std::vector<Row> &rows,
                       const TrainerOptions &options) {
    Trainer trainer(*executor, rows, options);
    return trainer.run([&](const StepRecord &r) { records.push_back(r); },
                       [] { return false; });
  }
};

} // namespace

// Both layers' w start at 0 and stay equal: loss = 2 mean((w - y)^2), its
// gradient in each 2 mean(w - y).
TEST_F(ToyTraining, MeanOfMeansBeforeTheUpdate) {
  const auto rows = rowsOf({{2}, {4, 4, 4}, {1}, {1}});
  const TrainingResult result = train(rows, inOrder(2));
  EXPECT_EQ(result.steps, 2);
  ASSERT_EQ(records.size(), 2u);
  // Micro-batch means 4 and 16, whatever their numbers of tokens.
  EXPECT_EQ(records[0].loss, 2 * (4 + 16) / 2.0);
  EXPECT_EQ(records[0].lr, 0.125);
  EXPECT_FLOAT_EQ(records[0].gradNorm, std::sqrt(2.f) * 2 * (2 + 4) / 2);
  EXPECT_EQ(records[0].tokens, 2 + 4);
  EXPECT_EQ(records[0].labelledTokens, 4);
  EXPECT_EQ(records[0].epoch, 0.5);
  // w = 0.125 * 6 = 0.75; the second step's targets are 1.
  EXPECT_NEAR(records[1].loss, 2 * 0.25 * 0.25, 1e-6);
  EXPECT_EQ(records[1].step, 2);
  EXPECT_EQ(result.lastLoss, records[1].loss);
  EXPECT_NEAR(weight(), 0.75 + 0.125 * 0.5, 1e-6);
}

TEST_F(ToyTraining, EmptyMicroBatchAddsZeroAndCounts) {
  const auto rows = rowsOf({{2}, {}});
  train(rows, inOrder(2));
  EXPECT_EQ(records[0].loss, 2 * 4 / 2.0);
  EXPECT_EQ(weight(), 0.125f * 2);
}

TEST_F(ToyTraining, Clipping) {
  TrainerOptions options = inOrder(1);
  options.maxGradNorm = 1;
  train(rowsOf({{2}}), options);
  EXPECT_FLOAT_EQ(records[0].gradNorm, std::sqrt(2.f) * 4); // before clipping
  EXPECT_NEAR(weight(), 0.125 * 4 / (std::sqrt(2.f) * 4), 1e-6);
}

TEST_F(ToyTraining, StepsEpochsAndDroppedRows) {
  const auto rows = rowsOf({{1}, {1}, {1}, {1}, {1}});
  TrainerOptions options = inOrder(2);
  options.epochs = 3;
  options.schedule = ScheduleKind::Linear;
  Trainer whole(*executor, rows, options);
  EXPECT_EQ(whole.stepsPerEpoch(), 2);
  EXPECT_EQ(whole.droppedRows(), 1);
  EXPECT_EQ(whole.totalSteps(), 6);
  options.maxSteps = 4;
  train(rows, options);
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[3].epoch, 2);
  // The schedule runs over the steps that will be made.
  EXPECT_EQ(records[3].lr, 0.125 / 4);
  options.maxSteps = 100;
  EXPECT_EQ(Trainer(*executor, rows, options).totalSteps(), 6);
}

TEST_F(ToyTraining, BiasCorrections) {
  const uint32_t one = builder.scalarF64("bias_correction1");
  const uint32_t two = builder.scalarF64("bias_correction2");
  std::vector<double> seen;
  device.functions["look"] = [&](const LaunchArg *args) {
    seen.push_back(args[0].real);
    seen.push_back(args[1].real);
  };
  for (auto &function : builder.plan.functions)
    if (function->name == "optimizer_step")
      function->body.push_back(launch(builder.kernel("look"), constant(1),
                                      scalarArg(one), scalarArg(two)));
  executor = std::make_unique<Executor>(builder.load(), device, *solo);
  TrainerOptions options = inOrder(1);
  options.beta1 = 0.5;
  options.beta2 = 0.75;
  train(rowsOf({{1}, {1}}), options);
  EXPECT_THAT(seen, testing::ElementsAre(0.5, 0.25, 0.75, 0.4375));
}

TEST_F(ToyTraining, NonFiniteLossNamesTheStepAndUpdatesNothing) {
  const float broken = 1e30f; // its square is infinite
  writeParameter(*executor, parameterOf(*executor, 1), 0, &broken);
  try {
    train(rowsOf({{1}}), inOrder(1));
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), 5020);
    EXPECT_EQ(error.exitCode(), ExitCode::NonFiniteLoss);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("the loss is inf at step 1, micro-step 1, "
                                   "on rank 0"));
  }
  EXPECT_EQ(weight(), broken);
  EXPECT_TRUE(records.empty());
}

/// A thread of its own takes the signal.
static void sendAndAwait(int number, const StopSignals &signals) {
  ::kill(::getpid(), number);
  while (signals.received() == 0)
    std::this_thread::yield();
}

/// Computed apart, with the generator's own definition: runs of a seed stay what
/// they were.
TEST(DropoutKey, IsFixedForGood) {
  EXPECT_EQ(dropoutKey(0, 0), 3978078226723292.0);
  EXPECT_EQ(dropoutKey(42, 0), 2684680729043043.0);
  EXPECT_EQ(dropoutKey(42, 1), 722221499832077.0);
  EXPECT_EQ(dropoutKey(42, 1000000), 4411159646965580.0);
}

TEST_F(ToyTraining, StopsAfterTheStep) {
  const auto rows = rowsOf({{1}, {1}, {1}, {1}});
  Trainer trainer(*executor, rows, inOrder(1));
  StopSignals signals;
  EXPECT_EQ(signals.received(), 0);
  const TrainingResult result = trainer.run(
      [&](const StepRecord &record) {
        if (record.step == 2) // the third step finds it
          sendAndAwait(SIGTERM, signals);
      },
      [&] { return signals.received() != 0; });
  EXPECT_EQ(result.steps, 3);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(signals.received(), SIGTERM);
}

TEST_F(ToyTraining, AStopInTheLastStepIsNone) {
  const auto rows = rowsOf({{1}, {1}});
  Trainer trainer(*executor, rows, inOrder(2));
  const TrainingResult result =
      trainer.run([](const StepRecord &) {}, [] { return true; });
  EXPECT_EQ(result.steps, 1);
  EXPECT_FALSE(result.stopped);
}

// Both w are 0: a token with target y loses 2 y^2.
TEST_F(ToyTraining, LossAverageOverTokens) {
  TrainerOptions options = inOrder(2);
  options.lossAverage = LossAverage::Token;
  train(rowsOf({{2}, {4, 4, 4}}), options);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].loss, 2 * (4 + 3 * 16) / 4.0);
  EXPECT_EQ(weight(), 0.125f * 2 * (2 + 3 * 4) / 4);
}

TEST_F(ToyTraining, LabelsBehindTheContextCountForNothing) {
  TrainerOptions options = inOrder(2);
  options.lossAverage = LossAverage::Token;
  options.contextLength = 3; // the prompt and two targets
  train(rowsOf({{2}, {4, 4, 4}}), options);
  EXPECT_EQ(records.at(0).labelledTokens, 3);
  EXPECT_FLOAT_EQ(static_cast<float>(records[0].loss), 2 * (4 + 2 * 16) / 3.f);
}

TEST_F(ToyTraining, AStepWithoutLabels) {
  for (const LossAverage average : {LossAverage::Batch, LossAverage::Token}) {
    TrainerOptions options = inOrder(2);
    options.lossAverage = average;
    records.clear();
    train(rowsOf({{}, {}}), options);
    EXPECT_EQ(records.at(0).loss, 0);
    EXPECT_EQ(records.at(0).gradNorm, 0);
    EXPECT_EQ(records.at(0).tokens, 2);
    EXPECT_EQ(weight(), 0);
  }
}

TEST_F(ToyTraining, TooLongForThePlan) {
  std::vector<Row> rows(1);
  rows[0].ids.assign(toyCapacity + 1, 1);
  rows[0].labels = rows[0].ids;
  TrainerOptions options = inOrder(1);
  options.contextLength = toyCapacity + 1;
  EXPECT_EQ(errorId([&] { train(rows, options); }, "'tokens' cannot be 384"),
            4102);
  options.contextLength = toyCapacity;
  train(rows, options);
  EXPECT_EQ(records.at(0).tokens, toyCapacity);
}

TEST_F(ToyTraining, EvaluationWeighsTokens) {
  std::vector<int64_t> seen;
  const EvaluationRecord result =
      evaluate(*executor, rowsOf({{2}, {}, {4, 4, 4}}), /*batchSize=*/2,
               /*contextLength=*/16,
               [&](int64_t done) { seen.push_back(done); });
  EXPECT_EQ(result.labelledTokens, 4);
  EXPECT_EQ(result.loss, 2 * (4 + 3 * 16) / 4.0);
  EXPECT_EQ(result.perplexity, std::exp(result.loss));
  EXPECT_THAT(seen, testing::ElementsAre(2, 3));
  EXPECT_EQ(weight(), 0);
  EXPECT_EQ(errorId([&] { evaluate(*executor, rowsOf({{}}), 1, 16); }), 5022);
}
