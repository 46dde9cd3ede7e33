//===- CrossEntropyTest.cpp - Text of the fused loss ----------------------===//

#include "compiler/Target/Cuda/Skeletons/CrossEntropy.h"

#include "test/unit/cuda/Bf16.h"
#include "test/unit/cuda/Emulator.h"
#include "test/unit/cuda/GuardedBuffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace fsdpq;
using namespace fsdpq::cuda;
using namespace fsdpq::test;

namespace {

constexpr double weight = 0.37;

float toFloat(uint16_t x) { return fromBf16(x); }
float toFloat(float x) { return x; }
void setTo(uint16_t &to, float x) { to = toBf16(x); }
void setTo(float &to, float x) { to = x; }

template <typename T>
struct Problem {
  int64_t vocabulary;
  std::vector<int> targets;
  std::vector<T> logits;

  Problem(int64_t vocabulary, std::vector<int> targets)
      : vocabulary(vocabulary), targets(std::move(targets)),
        logits(this->targets.size() * vocabulary) {
    std::mt19937 random(static_cast<unsigned>(vocabulary));
    std::normal_distribution<float> normal(0, 4);
    for (T &logit : logits)
      setTo(logit, normal(random));
  }

  struct Result {
    std::vector<T> gradient;
    std::vector<float> loss;
    bool operator==(const Result &) const = default;
  };

  Result run(Order order = Order::Ascending) const {
    EmulatedKernel kernel = EmulatedKernel::compile(
        emitFusedCrossEntropy({vocabulary, sizeof(T) == 2}));
    GuardedBuffer<int> ids(targets);
    GuardedBuffer<T> inout(logits);
    GuardedBuffer<float> loss(targets.size());
    EXPECT_EQ(kernel.launch({ids.data(), inout.data(), loss.data(), weight},
                            targets.size(), 3, order),
              "");
    return {inout.values(), loss.values()};
  }

  void check() const {
    SCOPED_TRACE(vocabulary);
    const Result result = run();
    const double relative = sizeof(T) == 2 ? 1 / 255.0 : 1e-5;
    for (size_t row = 0; row < targets.size(); ++row) {
      const T *x = &logits[row * vocabulary];
      double largest = -INFINITY, sum = 0;
      for (int64_t i = 0; i < vocabulary; ++i)
        largest = std::max<double>(largest, toFloat(x[i]));
      for (int64_t i = 0; i < vocabulary; ++i)
        sum += std::exp(toFloat(x[i]) - largest);
      const int target = targets[row];
      const double loss =
          target < 0 ? 0 : std::log(sum) + largest - toFloat(x[target]);
      EXPECT_NEAR(result.loss[row], loss, 1e-6 + 1e-5 * std::abs(loss)) << row;
      for (int64_t i = 0; i < vocabulary; ++i) {
        const double p = std::exp(toFloat(x[i]) - largest) / sum;
        const double wanted = target < 0 ? 0 : weight * (p - (i == target));
        ASSERT_NEAR(toFloat(result.gradient[row * vocabulary + i]), wanted,
                    relative * std::abs(wanted) + 1e-7)
            << row << ", " << i;
      }
    }
    EXPECT_EQ(run(Order::Descending), result);
  }
};

TEST(CrossEntropy, Bf16) {
  // One logit, less than a chunk, rows at any address, in shared memory whole
  // and in part, and its limits.
  Problem<uint16_t>(1, {0, -1, 0}).check();
  Problem<uint16_t>(5, {4, 0, -1, 2, 3, 1, 0, 4, 4}).check();
  Problem<uint16_t>(16, {15, 0, -1}).check();
  Problem<uint16_t>(1003, {0, 1002, 5, -1, 7, 8, 9, 10, 11}).check();
  Problem<uint16_t>(4 * 512 * 8, {100, 16383}).check();
  Problem<uint16_t>(32000, {31999, -100, 12345}).check();
  Problem<uint16_t>(50257, {0, 50256, 777}).check();
  Problem<uint16_t>(128256, {128255, 64000}).check();
}

TEST(CrossEntropy, F32) {
  Problem<float>(3, {2, -1, 0, 1}).check();
  Problem<float>(1003, {0, 1002, -1, 77, 999}).check();
  Problem<float>(32000, {31999, 0}).check();
  Problem<float>(256000, {255999}).check();
}

// Logits of minus infinity have no part; large ones do not overflow.
TEST(CrossEntropy, ExtremeLogits) {
  Problem<uint16_t> problem(4096, {17, 4095});
  for (size_t i = 0; i < problem.logits.size(); i += 2)
    problem.logits[i] = toBf16(-INFINITY);
  problem.logits[17] = toBf16(3.0e4f);
  problem.logits[2 * 4096 - 1] = toBf16(-3.0e4f);
  problem.check();
}

TEST(CrossEntropy, NotANumberReachesTheLoss) {
  for (int64_t place : {0, 500, 1002}) {
    Problem<float> problem(1003, {3});
    problem.logits[place] = NAN;
    EXPECT_TRUE(std::isnan(problem.run().loss[0])) << place;
  }
}

} // namespace
