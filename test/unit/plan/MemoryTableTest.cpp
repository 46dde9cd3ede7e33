#include "runtime/plan/MemoryTable.h"
#include "test/unit/plan/PlanBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq::rt;
using namespace fsdpq::test;

TEST(MemoryTable, SumsComponentsOverLayers) {
  MemoryTable table = buildMemoryTable(samplePlan().load()->plan());
  ASSERT_EQ(table.arenas.size(), 2u);
  EXPECT_EQ(table.total, 4096u + 8192u);

  const MemoryTable::Arena &base = table.arenas[0];
  EXPECT_EQ(base.name, "base");
  EXPECT_EQ(base.bytes, 4096u);
  ASSERT_EQ(base.parts.size(), 4u);
  EXPECT_EQ(base.parts[0].name, "codes");
  EXPECT_EQ(base.parts[0].bytes, 3u * 128);
  EXPECT_EQ(base.parts[1].name, "absmax");
  EXPECT_EQ(base.parts[1].bytes, 3u * 16);
  EXPECT_EQ(base.parts[2].name, "data f32");
  EXPECT_EQ(base.parts[2].bytes, 16u);
  EXPECT_EQ(base.parts[3].name, "other");
  EXPECT_EQ(base.parts[3].bytes, 4096u - 3 * 128 - 3 * 16 - 16);
  EXPECT_TRUE(table.arenas[1].parts.empty());
}

TEST(MemoryTable, SharedBytesCountOnce) {
  PlanBuilder b = samplePlan();
  auto tied = std::make_unique<fsdpq::plan::ParameterT>(*b.plan.parameters[1]);
  tied->name = "tied";
  b.plan.parameters.push_back(std::move(tied));
  MemoryTable table = buildMemoryTable(b.load()->plan());
  EXPECT_EQ(table.arenas[0].parts[2].bytes, 16u);
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
