#include "runtime/train/Parameters.h"

#include "test/unit/io/TestFiles.h"
#include "test/unit/train/ToyRanks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using namespace fsdpq::test;
using testing::ElementsAre;

static constexpr uint32_t loraA = 1, loraB = 2;

TEST(Parameters, WhatRanksHold) {
  const auto heldOf = [](const ToyMesh &mesh, uint32_t number) {
    std::vector<std::pair<int64_t, int64_t>> held(mesh.ranks);
    expectSuccess(onToyRanks(mesh, [&](Executor &executor) {
      const ElementRange range =
          heldElements(executor, parameterOf(executor, number));
      held[static_cast<size_t>(executor.communicator().rank())] = {range.begin,
                                                                   range.end};
    }));
    return held;
  };
  using Held = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(heldOf({1, 1}, loraB), (Held{{0, 2}}));
  EXPECT_EQ(heldOf({2, 1}, loraB), (Held{{0, 2}, {0, 2}}));
  EXPECT_EQ(heldOf({2, 2}, loraB), (Held{{0, 1}, {1, 2}}));
  EXPECT_EQ(heldOf({4, 2}, loraB), (Held{{0, 1}, {1, 2}, {0, 1}, {1, 2}}));
  EXPECT_EQ(heldOf({3, 3}, loraB), (Held{{0, 0}, {0, 2}, {2, 2}}));
  EXPECT_EQ(heldOf({3, 3}, loraA), (Held{{0, 1}, {1, 1}, {1, 1}}));
}

TEST(Parameters, WrittenIsRead) {
  for (const ToyMesh &mesh : toyMeshes)
    expectSuccess(onToyRanks(mesh, [&](Executor &executor) {
      const float values[] = {1, 2, 3, 4, 5, 6};
      for (int64_t i : {0, 1}) {
        writeParameter(executor, parameterOf(executor, loraA), i, values + i);
        writeParameter(executor, parameterOf(executor, loraB), i,
                       values + 2 + 2 * i);
        writeGradient(executor, parameterOf(executor, loraB), i, values + i);
      }
      EXPECT_THAT(readParameter(executor, parameterOf(executor, loraA), 1),
                  ElementsAre(2));
      EXPECT_THAT(readParameter(executor, parameterOf(executor, loraB), 0),
                  ElementsAre(3, 4));
      EXPECT_THAT(readGradient(executor, parameterOf(executor, loraB), 1),
                  ElementsAre(2, 3));

      // In order whatever the chunks, which need not end with an instance.
      for (const auto &[chunk, visits] :
           {std::pair<int64_t, int>{1, 6}, {4, 2}, {100, 1}}) {
        std::vector<float> read;
        int seen = 0;
        readParameters(
            executor,
            {{&parameterOf(executor, loraB), 1},
             {&parameterOf(executor, loraA), 0},
             {&parameterOf(executor, loraA), 1},
             {&parameterOf(executor, loraB), 0}},
            [&](std::span<const float> some) {
              ++seen;
              read.insert(read.end(), some.begin(), some.end());
            },
            chunk);
        EXPECT_THAT(read, ElementsAre(5, 6, 1, 2, 3, 4)) << mesh;
        EXPECT_EQ(seen, visits);
      }
    }));
}

TEST(Parameters, WhatCannotBeRead) {
  expectSuccess(onToyRanks(
      {2, 2},
      [](Executor &executor) {
        EXPECT_EQ(
            errorId(
                [&] { readParameter(executor, parameterOf(executor, 0), 0); },
                "!qt.nf4"),
            5003);
        EXPECT_EQ(
            errorId(
                [&] { readGradient(executor, parameterOf(executor, 0), 0); },
                "no gradient of parameter 'scale'"),
            5003);
      },
      [](PlanBuilder &b, FunctionDevice &, int64_t) {
        b.plan.parameters[0]->scheme = "!qt.nf4<block = 64, scale = f32>";
        b.plan.parameters[0]->components[0]->elements = 1;
      }));
}
