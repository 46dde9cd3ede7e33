#include "runtime/plan/MemoryTable.h"
#include "test/unit/plan/PlanBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq::rt;
using namespace fsdpq::test;
using testing::ElementsAre;
using testing::Pair;

static std::vector<std::pair<std::string, uint64_t>>
partsOf(const MemoryTable::Arena &arena) {
  std::vector<std::pair<std::string, uint64_t>> parts;
  for (const MemoryTable::Part &part : arena.parts)
    parts.emplace_back(part.name, part.bytes);
  return parts;
}

TEST(MemoryTable, SumsComponentsOverLayers) {
  MemoryTable table = buildMemoryTable(samplePlan().load()->plan());
  ASSERT_EQ(table.arenas.size(), 2u);
  EXPECT_EQ(table.total, 4096u + 8192u);
  EXPECT_EQ(table.arenas[0].name, "base");
  EXPECT_EQ(table.arenas[0].bytes, 4096u);
  EXPECT_THAT(partsOf(table.arenas[0]),
              ElementsAre(Pair("codes", 3u * 128), Pair("absmax", 3u * 16),
                          Pair("data f32", 16u),
                          Pair("padding", 3u * 112 + 240),
                          Pair("other", 4096u - 3 * 256 - 256)));
  EXPECT_TRUE(table.arenas[1].parts.empty());
}

TEST(MemoryTable, OneRankHoldsItsShare) {
  MemoryTable table = buildMemoryTable(shardedPlan().load()->plan());
  ASSERT_EQ(table.arenas.size(), 4u);
  // Four layers of 1024 bytes on two ranks.
  EXPECT_THAT(partsOf(table.arenas[0]),
              ElementsAre(Pair("codes", 4u * 128), Pair("absmax_u8", 4u * 4),
                          Pair("offset", 4u * 2), Pair("padding", 4u * 378),
                          Pair("other", 0u)));
  // 64 and 32 numbers in 512 bytes.
  EXPECT_THAT(partsOf(table.arenas[1]),
              ElementsAre(Pair("data f32", 192u), Pair("padding", 64u),
                          Pair("other", 0u)));
  EXPECT_TRUE(table.arenas[2].parts.empty());
}

TEST(MemoryTable, ListsContents) {
  MemoryTable table = buildMemoryTable(shardedPlan().load()->plan());
  EXPECT_THAT(
      partsOf(table.arenas[3]),
      ElementsAre(Pair("gathered layers", 2048u), Pair("other", 6144u)));
}

TEST(MemoryTable, TextHasUnitsAndBytes) {
  std::string text = buildMemoryTable(samplePlan().load()->plan()).text();
  EXPECT_THAT(text, testing::ContainsRegex("base +4.00 KiB +4,096\n"));
  EXPECT_THAT(text, testing::ContainsRegex("  codes +384 B +384\n"));
  EXPECT_THAT(text, testing::ContainsRegex("total +12.0 KiB +12,288\n"));
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(3 * (uint64_t(1) << 29)), "1.50 GiB");
  EXPECT_EQ(formatBytes(UINT64_MAX), "16.0 EiB");
}
