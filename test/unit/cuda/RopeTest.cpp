//===- RopeTest.cpp - Text of rotary positions ----------------------------===//

#include "compiler/Target/Cuda/Skeletons/Rope.h"

#include "test/unit/cuda/Bf16.h"
#include "test/unit/cuda/Emulator.h"
#include "test/unit/cuda/GuardedBuffer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace fsdpq;
using namespace fsdpq::cuda;
using namespace fsdpq::test;

namespace {

struct Problem {
  RopeParams params;
  int64_t rows;
  std::vector<float> table;
  std::vector<uint16_t> x;

  Problem(const RopeParams &p, int64_t rows)
      : params(p), rows(rows), table(rows * p.headDim), x(rows * p.columns) {
    std::mt19937 random(static_cast<unsigned>(p.columns));
    std::normal_distribution<float> normal;
    const int64_t half = p.headDim / 2;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t k = 0; k < half; ++k) {
        const double angle = row * std::pow(1e4, -double(k) / double(half));
        table[row * p.headDim + k] = static_cast<float>(std::cos(angle));
        table[row * p.headDim + half + k] = static_cast<float>(std::sin(angle));
      }
    for (uint16_t &value : x)
      value = toBf16(normal(random));
  }

  std::vector<uint16_t> run(Order order = Order::Ascending) const {
    EmulatedKernel kernel = EmulatedKernel::compile(emitRope(params));
    GuardedBuffer<float> angles(table);
    GuardedBuffer<uint16_t> inout(x);
    EXPECT_EQ(kernel.launch({angles.data(), inout.data()}, rows, 3, order), "");
    return inout.values();
  }

  /// Of an element of x.
  double wanted(int64_t row, int64_t column) const {
    const int64_t half = params.headDim / 2, k = column % half;
    const double value = fromBf16(x[row * params.columns + column]);
    if (column >= params.heads * params.headDim)
      return value;
    const bool isSecond = column % params.headDim >= half;
    const double other =
        fromBf16(x[row * params.columns + column + (isSecond ? -half : half)]);
    const double cosine = table[row * params.headDim + k];
    const double sine = table[row * params.headDim + half + k];
    return value * cosine +
           (isSecond != params.inverse ? other : -other) * sine;
  }
};

TEST(Rope, Rotates) {
  // Many heads, grouped ones, a number that 4 does not divide, one, small ones.
  for (const RopeParams &params : {RopeParams{12 * 128, 128, 8, false},
                                   {8 * 64, 64, 6, true},
                                   {9 * 80, 80, 7, false},
                                   {5 * 96, 96, 5, true},
                                   {256 + 8, 256, 1, false},
                                   {3 * 16, 16, 2, true},
                                   {160 * 128, 128, 144, false}})
    for (int64_t rows : {1, 7, 128}) {
      SCOPED_TRACE(testing::Message() << params.heads << " x " << params.headDim
                                      << ", " << rows << " rows");
      ASSERT_TRUE(hasRope(params));
      const Problem problem(params, rows);
      const std::vector<uint16_t> y = problem.run();
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < params.columns; ++column) {
          const double wanted = problem.wanted(row, column);
          // Half a unit in the last place of bf16, and what f32 adds.
          ASSERT_NEAR(fromBf16(y[row * params.columns + column]), wanted,
                      std::abs(wanted) / 255.9 + 1e-6)
              << row << ", " << column;
        }
      EXPECT_EQ(problem.run(Order::Descending), y);
    }
}

TEST(Rope, DeclinesOddShapes) {
  EXPECT_FALSE(hasRope({256, 24, 2, false}));
  EXPECT_FALSE(hasRope({260, 32, 2, false}));
  EXPECT_FALSE(hasRope({1024 * 256, 256, 1024, false}));
}

} // namespace
