#include "runtime/train/AdapterInit.h"
#include "runtime/comm/Solo.h"
#include "runtime/exec/Executor.h"
#include "runtime/train/Parameters.h"
#include "test/unit/train/ToyRanks.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;

static std::vector<float> values(size_t count, uint64_t seed,
                                 const std::string &name, int64_t layer,
                                 int64_t fanIn = 64) {
  std::vector<float> result(count);
  kaimingUniform(result, fanIn, seed, name, layer);
  return result;
}

TEST(KaimingUniform, Moments) {
  constexpr size_t count = 1 << 18;
  const auto sample = values(count, 42, "q_proj.lora_A", 0);
  const double bound = 1.0 / 8;
  double sum = 0, squares = 0, neighbours = 0;
  size_t tails = 0;
  for (size_t i = 0; i < count; ++i) {
    ASSERT_LE(std::abs(sample[i]), bound);
    sum += sample[i];
    squares += sample[i] * sample[i];
    if (i > 0)
      neighbours += sample[i] * sample[i - 1];
    tails += sample[i] > 0.9 * bound;
  }
  // Five standard errors of a uniform distribution's moments.
  const double n = count, variance = bound * bound / 3;
  EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(squares / n, variance, 5 * variance * std::sqrt(0.8 / n));
  EXPECT_NEAR(neighbours / n, 0, 5 * variance / std::sqrt(n));
  EXPECT_NEAR(tails / n, 0.05, 5 * std::sqrt(0.05 * 0.95 / n));
}

TEST(KaimingUniform, DependsOnAllItsKeys) {
  const auto one = values(64, 42, "q_proj.lora_A", 0);
  EXPECT_EQ(one, values(64, 42, "q_proj.lora_A", 0));
  EXPECT_NE(one, values(64, 43, "q_proj.lora_A", 0));
  EXPECT_NE(one, values(64, 42, "k_proj.lora_A", 0));
  EXPECT_NE(one, values(64, 42, "q_proj.lora_A", 1));
  // An element does not depend on how many there are.
  const auto longer = values(128, 42, "q_proj.lora_A", 0);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), longer.begin()));
  // Nor on where the computation starts.
  std::vector<float> rest(28);
  kaimingUniform(rest, 64, 42, "q_proj.lora_A", 0, 100);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), longer.begin() + 100));
}

// Changing the generator would change every run's seed; these were computed by
// the formula of the header with Python's integers.
TEST(KaimingUniform, FixedValues) {
  EXPECT_THAT(values(4, 42, "q_proj.lora_A", 3),
              testing::ElementsAre(0x1.e2a9e20000000p-5f, 0x1.0e07460000000p-4f,
                                   0x1.cc3e440000000p-6f, 0x1.100bec0000000p-5f));
}

TEST(InitialiseAdapters, EachInstanceByItsLayer) {
  FunctionDevice device;
  const auto solo = makeSolo();
  Executor executor(toyModel(device).load(), device, *solo);
  const auto &parameters = *executor.plan().plan().parameters();
  const float junk = 7;
  writeParameter(executor, *parameters.Get(1), 1, &junk);

  initialiseAdapters(executor, 5);
  for (int64_t i : {0, 1})
    EXPECT_EQ(readParameter(executor, *parameters.Get(1), i),
              std::vector<float>{0});
  EXPECT_EQ(readParameter(executor, *parameters.Get(2), 0),
            values(2, 5, "q.lora_B", 0, 4));
  EXPECT_EQ(readParameter(executor, *parameters.Get(2), 1),
            values(2, 5, "q.lora_B", 3, 4));
}

// The second rank of two holds the second half of lora_B alone.
TEST(InitialiseAdapters, RanksComputeWhatTheyHold) {
  const std::vector<float> wanted = values(2, 5, "q.lora_B", 3, 4);
  for (const ToyMesh &mesh : toyMeshes)
    expectSuccess(onToyRanks(mesh, [&](Executor &executor) {
      initialiseAdapters(executor, 5);
      EXPECT_EQ(readParameter(executor, parameterOf(executor, 2), 1), wanted)
          << mesh;
      EXPECT_EQ(readParameter(executor, parameterOf(executor, 1), 1),
                std::vector<float>{0});
    }));
}
