//===- Ranks.cpp - The number of ranks changes nothing --------------------===//
//
// A deterministic run gives the same bits on any number of ranks, however units
// are cut, kept and reduced; other runs agree within rounding.
//
//===----------------------------------------------------------------------===//

#include "test/unit/oracle/RankRun.h"

#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::test;

namespace {

/// How units are spread: what --sharding_strategy and --fsdp_units say.
struct Strategy {
  const char *name;
  bool isHybrid, isReplicated, keepGathered, splitUnits;
};
constexpr Strategy strategies[] = {
    {"full_shard", false, false, false, false},
    {"shard_grad_op", false, false, true, false},
    {"ddp", false, true, false, false},
    {"hybrid_full_shard", true, false, false, false},
    {"hybrid_shard_grad_op", true, false, true, false},
    {"full_shard_attn_mlp", false, false, false, true},
};

RankRun with(RankRun run, const Strategy &strategy, int64_t ranks) {
  run.ranks = ranks;
  run.shards = strategy.isReplicated                       ? 1
               : strategy.isHybrid && ranks % 2 == 0 ? ranks / 2
                                                           : ranks;
  run.keepGathered = strategy.keepGathered;
  run.splitUnits = strategy.splitUnits;
  return run;
}

/// Bits, with the first difference named.
void expectSame(const RankResult &actual, const RankResult &wanted) {
  EXPECT_EQ(actual.losses, wanted.losses);
  EXPECT_EQ(actual.norms, wanted.norms);
  ASSERT_EQ(actual.parameters.size(), wanted.parameters.size());
  for (const auto &[name, values] : wanted.parameters)
    EXPECT_TRUE(actual.parameters.at(name) == values) << name;
}

void expectNear(const RankResult &actual, const RankResult &wanted) {
  ASSERT_EQ(actual.losses.size(), wanted.losses.size());
  for (size_t i = 0; i < wanted.losses.size(); ++i) {
    EXPECT_NEAR(actual.losses[i], wanted.losses[i], 2e-6 * wanted.losses[i]);
    EXPECT_NEAR(actual.norms[i], wanted.norms[i], 2e-5 * wanted.norms[i]);
  }
  expectClose(actual.parameters, wanted.parameters, 0, 2e-5);
}

struct Case {
  TrainType type;
  bool checkpointing;
};
class Ranks : public testing::TestWithParam<Case> {
protected:
  static RankRun run() {
    RankRun run;
    run.type = GetParam().type;
    run.checkpointing = GetParam().checkpointing;
    return run;
  }
};

std::string caseName(const testing::TestParamInfo<Case> &info) {
  static constexpr const char *names[] = {"Full", "Lora", "Qlora"};
  return std::string(names[static_cast<int>(info.param.type)]) +
         (info.param.checkpointing ? "Recomputed" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Types, Ranks,
    testing::Values(Case{TrainType::Full, false}, Case{TrainType::Full, true},
                    Case{TrainType::Lora, false}, Case{TrainType::Lora, true},
                    Case{TrainType::Qlora, false}, Case{TrainType::Qlora, true}),
    caseName);

} // namespace

TEST_P(Ranks, GiveTheSameBits) {
  const RankResult one = train(run());
  ASSERT_EQ(one.losses.size(), 2u);
  EXPECT_GT(one.norms[0], 0.1); // clipped
  for (const Strategy &strategy : strategies)
    for (const int64_t ranks : {2, 3, 4, 8}) {
      if (strategy.isHybrid && ranks % 2 != 0)
        continue;
      SCOPED_TRACE(std::string(strategy.name) + " on " + std::to_string(ranks));
      expectSame(train(with(run(), strategy, ranks)), one);
    }
}

TEST_P(Ranks, AgreeOtherwise) {
  RankRun plain = run();
  plain.deterministic = false;
  const RankResult one = train(plain);
  for (const Strategy &strategy : strategies)
    for (const bool eachMicroStep : {true, false}) {
      SCOPED_TRACE(std::string(strategy.name) +
                   (eachMicroStep ? "" : " reduced once a step"));
      RankRun several = with(plain, strategy, 4);
      several.reduceEachMicroStep = eachMicroStep;
      expectNear(train(several), one);
    }
}

TEST(RanksUnderDelay, GiveTheSameBits) {
  RankRun run;
  run.microBatches = 8;
  const RankResult one = train(run);
  for (const Strategy &strategy : strategies)
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      SCOPED_TRACE(std::string(strategy.name) + ", seed " + std::to_string(seed));
      RankRun slow = with(run, strategy, 4);
      slow.delays = {seed * 1000, std::chrono::microseconds(300)};
      expectSame(train(slow), one);
    }
}

TEST(RanksByToken, GiveTheSameBits) {
  RankRun run;
  run.average = rt::LossAverage::Token;
  const RankResult one = train(run);
  expectSame(train(with(run, strategies[0], 4)), one);
  RankRun byBatch;
  EXPECT_NE(train(byBatch).losses, one.losses);
}
