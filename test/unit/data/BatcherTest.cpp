#include "TestFiles.h"

#include "runtime/data/Batcher.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using testing::ElementsAre;

namespace {

std::vector<int64_t> rowsOf(Batcher &batcher, int64_t step, int64_t microStep,
                            int64_t rank) {
  std::span<const int64_t> rows = batcher.rowsOf(step, microStep, rank);
  return {rows.begin(), rows.end()};
}

TEST(Batcher, DealsMicroBatchesInOrder) {
  BatcherOptions options{
      .batchSize = 2, .accumulation = 2, .worldSize = 2, .shuffle = false};
  Batcher batcher(19, options);
  EXPECT_EQ(batcher.stepsPerEpoch(), 2);
  EXPECT_EQ(batcher.droppedRows(), 3);
  EXPECT_THAT(rowsOf(batcher, 0, 0, 0), ElementsAre(0, 1));
  EXPECT_THAT(rowsOf(batcher, 0, 0, 1), ElementsAre(2, 3));
  EXPECT_THAT(rowsOf(batcher, 0, 1, 0), ElementsAre(4, 5));
  EXPECT_THAT(rowsOf(batcher, 0, 1, 1), ElementsAre(6, 7));
  EXPECT_THAT(rowsOf(batcher, 1, 1, 1), ElementsAre(14, 15));
  // The next epoch begins with the first row again.
  EXPECT_THAT(rowsOf(batcher, 2, 0, 0), ElementsAre(0, 1));
}

TEST(Batcher, WorldSizeOnlySaysWhoComputes) {
  BatcherOptions one{.batchSize = 3,
                     .accumulation = 4,
                     .worldSize = 1,
                     .shuffle = true,
                     .seed = 11};
  BatcherOptions four = one;
  four.accumulation = 1;
  four.worldSize = 4;
  Batcher alone(50, one), together(50, four);
  for (int64_t step = 0; step < 3 * alone.stepsPerEpoch(); ++step)
    for (int64_t number = 0; number < 4; ++number)
      EXPECT_EQ(rowsOf(alone, step, number, 0),
                rowsOf(together, step, 0, number));
}

TEST(Batcher, EveryEpochReadsARowOnce) {
  BatcherOptions options{.batchSize = 5, .shuffle = true, .seed = 3};
  Batcher batcher(35, options);
  EXPECT_EQ(batcher.droppedRows(), 0);
  std::vector<std::vector<int64_t>> epochs;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> seen;
    for (int64_t step = 0; step < 7; ++step)
      for (int64_t row : rowsOf(batcher, epoch * 7 + step, 0, 0))
        seen.push_back(row);
    epochs.push_back(seen);
    std::sort(seen.begin(), seen.end());
    for (int64_t row = 0; row < 35; ++row)
      EXPECT_EQ(seen[row], row);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  // A resumed run asks for a later step first.
  Batcher resumed(35, options);
  EXPECT_EQ(rowsOf(resumed, 9, 0, 0), rowsOf(batcher, 9, 0, 0));
  EXPECT_EQ(rowsOf(resumed, 2, 0, 0), rowsOf(batcher, 2, 0, 0));
}

TEST(Batcher, TheShuffleIsFixedForGood) {
  EXPECT_THAT(shuffledOrder(8, 0, 0), ElementsAre(7, 4, 3, 6, 0, 5, 1, 2));
  EXPECT_THAT(shuffledOrder(8, 0, 1), ElementsAre(1, 6, 4, 0, 2, 3, 5, 7));
  EXPECT_THAT(shuffledOrder(8, 42, 0), ElementsAre(0, 4, 1, 6, 5, 3, 2, 7));
  EXPECT_THAT(shuffledOrder(1, 5, 5), ElementsAre(0));
}

TEST(Batcher, TheShuffleIsFair) {
  // Where row 0 lands over 6000 epochs: 1000 times a place, deviation 29.
  std::vector<int> places(6);
  for (int64_t epoch = 0; epoch < 6000; ++epoch) {
    std::vector<int64_t> order = shuffledOrder(6, 1, epoch);
    ++places[std::find(order.begin(), order.end(), 0) - order.begin()];
  }
  for (int count : places)
    EXPECT_NEAR(count, 1000, 150);
}

TEST(Batcher, StepsPerEpoch) {
  EXPECT_EQ(stepsPerEpoch(100, 4, 2, 3), 4);
  EXPECT_EQ(stepsPerEpoch(23, 4, 2, 3), 0);
  EXPECT_EQ(stepsPerEpoch(100, INT64_MAX, INT64_MAX, 3), 0);
}

TEST(Batcher, RefusesTooFewRows) {
  expectError(2104,
              "the data set has 7 rows, but one step needs 2 (batch size)",
              [] { Batcher(7, {.batchSize = 2, .accumulation = 4}); });
  expectError(2103, "the batch size must be at least 1, not 0",
              [] { Batcher(7, {.batchSize = 0}); });
  expectError(2103, "the world size must be at least 1, not -1",
              [] { Batcher(7, {.worldSize = -1}); });
}

} // namespace
