#include "runtime/plan/Extents.h"

#include <limits>

#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;

static constexpr int64_t maximum = std::numeric_limits<int64_t>::max();
static constexpr int64_t minimum = std::numeric_limits<int64_t>::min();

TEST(Extents, DivisionRoundsDown) {
  EXPECT_EQ(floorDivide(7, 2), 3);
  EXPECT_EQ(floorDivide(-7, 2), -4);
  EXPECT_EQ(floorDivide(-8, 2), -4);
  EXPECT_EQ(floorDivide(minimum, 1), minimum);
}

TEST(Extents, FollowTheFormula) {
  plan::Extent share(0, 0, 9, 32, 0, 1, maximum);
  EXPECT_EQ(evaluate(share, 100, 0), 29); // floor(900 / 32) + 1
  plan::Extent chunk(0, 1, 1, 1, -512, 0, 512);
  EXPECT_EQ(evaluate(chunk, 1300, 0), 512);
  EXPECT_EQ(evaluate(chunk, 1300, 2), 276);
  EXPECT_EQ(evaluate(chunk, 1300, 3), -236);
}

TEST(Extents, RangeCoversAllScalarsAndIndices) {
  plan::Extent chunk(0, 1, 1, 1, -512, 0, 512);
  auto range = rangeOf(chunk, 1300, 3);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->upper, 512);
  EXPECT_EQ(range->upperWithoutCap, 1300);
  EXPECT_EQ(range->lowestAtCapacity, 276);

  plan::Extent falling(0, 0, -1, 3, 0, 10, maximum);
  range = rangeOf(falling, 7, 0);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->upper, 10);
  EXPECT_EQ(range->lowestAtCapacity, 7); // floor(-7 / 3) = -3
}

TEST(Extents, OverflowIsFound) {
  EXPECT_FALSE(rangeOf(plan::Extent(0, 0, 2, 1, 0, 0, maximum), maximum, 1));
  EXPECT_FALSE(rangeOf(plan::Extent(0, 0, 1, 1, 0, 1, maximum), maximum, 1));
  EXPECT_FALSE(rangeOf(plan::Extent(-1, 1, 0, 1, maximum, 0, maximum), 0, 3));
  EXPECT_FALSE(rangeOf(plan::Extent(-1, 1, 0, 1, -1, minimum, maximum), 0, 2));
  EXPECT_FALSE(
      rangeOf(plan::Extent(0, 0, minimum, 1, minimum, minimum, maximum),
              maximum, maximum));
  EXPECT_TRUE(rangeOf(plan::Extent(0, 0, 1, 1, 0, 0, maximum), maximum, 1));
}
