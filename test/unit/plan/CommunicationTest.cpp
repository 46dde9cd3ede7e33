#include "runtime/plan/Communication.h"
#include "test/unit/plan/PlanBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::test;

TEST(Communication, CountsWhatARankReceives) {
  auto plan = shardedPlan().load();
  std::string text;
  for (const plan::Function *function : *plan->plan().functions())
    for (const Traffic &traffic : communicationOf(plan->plan(), *function))
      text += function->name()->str() + " " +
              std::to_string(static_cast<int>(traffic.kind)) + " " +
              std::to_string(static_cast<int>(traffic.group)) + " " +
              std::to_string(traffic.unit) + " " +
              std::to_string(traffic.calls) + " " +
              std::to_string(traffic.bytes) + "\n";
  // Kinds: 6 all_gather, 7 reduce_scatter, 8 all_reduce. Groups: 0 of four
  // ranks, 1 and 2 of two.
  EXPECT_EQ(text, "micro_step 6 1 1 1 256\n"
                  "micro_step 6 1 0 4 2048\n"
                  "micro_step 7 1 1 1 256\n"
                  "optimizer_step 8 2 1 1 256\n"
                  "optimizer_step 8 0 -1 1 24\n"
                  "mean_w 8 0 -1 1 96\n"
                  "store_layers 7 0 0 1 1536\n");
  EXPECT_THAT(
      trafficText(
          plan->plan(),
          communicationOf(plan->plan(), *plan->plan().functions()->Get(0))),
      testing::ContainsRegex("all_gather +shard +layers +4 calls +2.00 KiB\n"));
}
