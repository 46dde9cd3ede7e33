#include "runtime/train/Generator.h"

#include "runtime/comm/Solo.h"
#include "test/unit/io/TestFiles.h"
#include "test/unit/train/ToyRanks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using namespace fsdpq::test;
using testing::ElementsAre;

// After i the toy says i + 1, modulo 8.
TEST(Generator, StopsAtAStopToken) {
  FunctionDevice device;
  const auto solo = makeSolo();
  Executor executor(toyModel(device).load(), device, *solo);
  const Generation result =
      generateGreedily(executor, {5, 2}, {.maxNewTokens = 20, .stopIds = {0}});
  EXPECT_THAT(result.ids, ElementsAre(3, 4, 5, 6, 7));
  EXPECT_EQ(result.end, Generation::End::StopToken);
}

TEST(Generator, StopsAtTheLimit) {
  FunctionDevice device;
  const auto solo = makeSolo();
  Executor executor(toyModel(device).load(), device, *solo);
  const Generation result =
      generateGreedily(executor, {6}, {.maxNewTokens = 3, .stopIds = {}});
  EXPECT_THAT(result.ids, ElementsAre(7, 0, 1));
  EXPECT_EQ(result.end, Generation::End::MaxNewTokens);
}

TEST(Generator, StopsAtTheCapacity) {
  FunctionDevice device;
  const auto solo = makeSolo();
  Executor executor(toyModel(device).load(), device, *solo);
  const std::vector<int32_t> prompt(toyCapacity - 1, 0);
  const Generation result =
      generateGreedily(executor, prompt, {.maxNewTokens = 9, .stopIds = {}});
  EXPECT_THAT(result.ids, ElementsAre(1, 2));
  EXPECT_EQ(result.end, Generation::End::Capacity);

  EXPECT_EQ(errorId([&] {
              generateGreedily(executor,
                               std::vector<int32_t>(toyCapacity + 1), {});
            }, "257 tokens; there is room for 256"),
            5030);
  EXPECT_EQ(errorId([&] { generateGreedily(executor, {}, {}); }), 5030);
}

TEST(Generator, LogitsThatAreNotNumbers) {
  FunctionDevice device;
  PlanBuilder b = toyModel(device);
  device.functions["count_up"] = [](const LaunchArg *args) {
    auto *logits = reinterpret_cast<float *>(args[2].address);
    std::fill_n(logits, toyVocabulary,
                std::numeric_limits<float>::quiet_NaN());
  };
  const auto solo = makeSolo();
  Executor executor(b.load(), device, *solo);
  EXPECT_EQ(errorId([&] { generateGreedily(executor, {1}, {}); }), 5031);
}

TEST(Generator, TheSameOnAllRanks) {
  for (const ToyMesh &mesh : toyMeshes)
    expectSuccess(onToyRanks(mesh, [](Executor &executor) {
      EXPECT_THAT(
          generateGreedily(executor, {6}, {.maxNewTokens = 3, .stopIds = {}})
              .ids,
          ElementsAre(7, 0, 1));
    }));
}
