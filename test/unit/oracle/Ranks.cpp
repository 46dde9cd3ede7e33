//===- Ranks.cpp - The number of ranks changes nothing --------------------===//
//
// A deterministic run gives the same bits on any number of ranks, however units
// are cut, kept and reduced; other runs agree within rounding.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/Communication.h"
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

/// Bits of what is learnt, with the first difference named.
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

/// The masks are those of the micro-batches, whoever computes them and however
/// often, and both passes find the same.
TEST(Ranks, DropTheSame) {
  RankRun run;
  run.type = TrainType::Lora;
  const RankResult without = train(run);
  run.dropout = 0.3;
  const RankResult one = train(run);
  EXPECT_NE(one.losses[0], without.losses[0]);
  EXPECT_NEAR(one.losses[0], without.losses[0], 0.05 * without.losses[0]);
  for (const bool checkpointing : {false, true})
    for (const Strategy &strategy : strategies)
      for (const int64_t ranks : {1, 2, 3, 4}) {
        if (strategy.isHybrid && ranks % 2 != 0)
          continue;
        SCOPED_TRACE(std::string(strategy.name) + " on " +
                     std::to_string(ranks) +
                     (checkpointing ? ", recomputed" : ""));
        run.checkpointing = checkpointing;
        expectSame(train(with(run, strategy, ranks)), one);
      }
}

namespace {

/// Bytes by what moves them, of one call of a function.
struct Moved {
  uint64_t base = 0, trained = 0, gradients = 0, rest = 0;

  uint64_t total() const { return base + trained + gradients + rest; }
};

Moved movedBy(const plan::Plan &plan, const std::string &name) {
  Moved moved;
  for (const plan::Function *function : *plan.functions()) {
    if (function->name()->str() != name)
      continue;
    for (const rt::Traffic &traffic : rt::communicationOf(plan, *function)) {
      const bool isTrained =
          traffic.unit >= 0 && plan.units()->Get(traffic.unit)->gradient() >= 0;
      (traffic.unit < 0                           ? moved.rest
       : traffic.kind == plan::Op::ReduceScatter ? moved.gradients
       : isTrained                                ? moved.trained
                                                  : moved.base) += traffic.bytes;
    }
  }
  return moved;
}

/// Whole bytes of the units, each layer's counted.
uint64_t bytesOf(const plan::Plan &plan, bool isTrained, bool isOfLayers) {
  uint64_t bytes = 0;
  for (const plan::Unit *unit : *plan.units())
    if ((unit->gradient() >= 0) == isTrained &&
        (unit->layers() && unit->layers()->size() > 0) == isOfLayers)
      bytes += unit->bytes() *
               (isOfLayers ? unit->layers()->size() : 1);
  return bytes;
}

} // namespace

/// What plans say they move is what comes in, and is what it must be: layers'
/// weights (N - 1) / N twice a micro-step, once where they stay whole, the
/// embedding, the head and the last norm once each, gradients once.
TEST(RanksCommunicate, WhatThePlanSays) {
  for (const bool keep : {false, true})
    for (const int64_t ranks : {2, 4}) {
      SCOPED_TRACE(std::to_string(ranks) + (keep ? " ranks, kept" : " ranks"));
      RankRun run;
      run.ranks = ranks;
      run.deterministic = false;
      run.keepGathered = keep;
      run.microBatches = 8;
      const auto loaded = compilePlan(compileOptions(run));
      const plan::Plan &plan = loaded->plan();
      const Moved micro = movedBy(plan, "micro_step");
      const auto part = [&](uint64_t bytes) {
        return bytes / static_cast<uint64_t>(ranks) *
               static_cast<uint64_t>(ranks - 1);
      };
      const uint64_t times = keep ? 1 : 2;
      EXPECT_EQ(micro.base, part(times * bytesOf(plan, false, true) +
                                 bytesOf(plan, false, false)));
      EXPECT_EQ(micro.trained, part(times * bytesOf(plan, true, true)));
      EXPECT_EQ(micro.gradients, part(bytesOf(plan, true, true)));
      EXPECT_EQ(micro.rest, 0u);
      const Moved step = movedBy(plan, "optimizer_step");
      EXPECT_EQ(step.total(), static_cast<uint64_t>(ranks - 1) * 8); // the norm
      EXPECT_EQ(train(run).receivedBytes,
                static_cast<uint64_t>(run.steps) *
                    (static_cast<uint64_t>(8 / ranks) * micro.total() +
                     step.total()));
    }
}

/// Of everything that lives from step to step a rank has 1 / N, but for padding.
TEST(RanksRemember, AnNthOfTheState) {
  RankRun run;
  run.deterministic = false;
  const auto one = compilePlan(compileOptions(run));
  run.ranks = 4;
  const auto four = compilePlan(compileOptions(run));
  for (const char *name : {"base", "trained", "gradients", "moments"}) {
    const auto bytes = [&](const plan::Plan &plan) {
      for (const plan::Arena *arena : *plan.arenas())
        if (arena->name()->str() == name)
          return arena->bytes();
      ADD_FAILURE() << name;
      return uint64_t(0);
    };
    // A unit is padded to 256 bytes a rank.
    const uint64_t whole = bytes(one->plan()), share = bytes(four->plan());
    EXPECT_GE(4 * share, whole) << name;
    EXPECT_LE(4 * share, whole + 2 * 1024 * four->plan().units()->size() * 3)
        << name;
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
