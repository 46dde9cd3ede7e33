#include "runtime/io/Json.h"
#include "runtime/train/Schedule.h"

#include <gtest/gtest.h>

using namespace fsdpq::rt;

static ScheduleKind kindOf(const std::string &name) {
  if (name == "linear")
    return ScheduleKind::Linear;
  return name == "cosine" ? ScheduleKind::Cosine : ScheduleKind::Constant;
}

// Transformers' and torch's values for runs of 1 to 300 steps.
TEST(Schedule, Oracle) {
  const auto oracle = readJsonFile(FSDPQ_TEST_INPUTS "/train/schedules.json");
  const double tolerance = oracle["tolerance_rel"];
  size_t compared = 0;
  for (const auto &testCase : oracle["cases"]) {
    const Schedule schedule(kindOf(testCase["schedule"]), testCase["lr"],
                            testCase["total"]);
    EXPECT_EQ(schedule.warmupSteps(), testCase["warmup"].get<int64_t>());
    auto expectAt = [&](int64_t step, double expected) {
      EXPECT_NEAR(schedule.at(step), expected, tolerance * expected)
          << testCase["schedule"] << " of " << testCase["total"] << " at "
          << step;
      ++compared;
    };
    int64_t step = 0;
    for (const auto &value : testCase["values"])
      expectAt(step++, value);
    expectAt(testCase["total"], testCase["after_last"]);
  }
  EXPECT_GT(compared, 300u);
}
