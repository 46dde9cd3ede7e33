#include "runtime/io/Json.h"
#include "runtime/observe/HostMemory.h"
#include "runtime/observe/Metrics.h"
#include "runtime/observe/Progress.h"
#include "test/unit/io/TestFiles.h"

#include <gtest/gtest.h>
#include <limits>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;

static StepRecord sampleStep() {
  StepRecord record;
  record.step = 3;
  record.epoch = 0.1 + 0.2;
  record.loss = 1.0 / 3;
  record.lr = 2e-5;
  record.gradNorm = 0.1f;
  record.tokens = 700;
  record.labelledTokens = 300;
  record.stepSeconds = 0.5;
  record.peakMemoryBytes = uint64_t(1) << 40;
  return record;
}

TEST(Metrics, NumbersRoundTrip) {
  const StepRecord record = sampleStep();
  const std::string line = metricsLine(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = parseJson(line, "line");
  EXPECT_EQ(json["step"], 3);
  EXPECT_EQ(json["epoch"].get<double>(), record.epoch);
  EXPECT_EQ(json["loss"].get<double>(), record.loss);
  EXPECT_EQ(json["lr"].get<double>(), record.lr);
  EXPECT_EQ(json["grad_norm"].get<double>(), record.gradNorm);
  EXPECT_EQ(json["tokens"], 700);
  EXPECT_EQ(json["labelled_tokens"], 300);
  EXPECT_EQ(json["tokens_per_second"], 1400.0);
  EXPECT_EQ(json["step_seconds"], 0.5);
  EXPECT_EQ(json["peak_memory_bytes"], uint64_t(1) << 40);
  EXPECT_EQ(json.size(), 10u);
}

TEST(Metrics, NonFiniteNumbersAreNull) {
  StepRecord record;
  record.gradNorm = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(parseJson(metricsLine(record), "line")["grad_norm"].is_null());
}

TEST(Metrics, LinesAreWrittenAtOnce) {
  ScratchFolder folder;
  const std::string path = folder.write("metrics.jsonl", "an older run\n");
  MetricsFile file(path);
  file.write(sampleStep());
  EXPECT_EQ(readFile(path), metricsLine(sampleStep()) + "\n");
  file.write(EvaluationRecord{3, 0.5, 1.6487212707001282, 42});
  EXPECT_EQ(readFile(path),
            metricsLine(sampleStep()) +
                "\n{\"step\":3,\"eval_loss\":0.5,\"eval_perplexity\":"
                "1.6487212707001282,\"eval_tokens\":42}\n");
}

TEST(Metrics, FileThatCannotBeMade) {
  EXPECT_EQ(errorId([] { MetricsFile("/nonexistent/metrics.jsonl"); }), 1301);
}

TEST(Progress, Durations) {
  EXPECT_EQ(formatDuration(0), "0:00");
  EXPECT_EQ(formatDuration(61.4), "1:01");
  EXPECT_EQ(formatDuration(3723), "1:02:03");
  EXPECT_EQ(formatDuration(-1), "?");
  EXPECT_EQ(formatDuration(std::numeric_limits<double>::quiet_NaN()), "?");
}

TEST(Progress, LinesForFiles) {
  ScratchFolder folder;
  std::FILE *out = std::fopen(folder.path("out").c_str(), "w+");
  ASSERT_NE(out, nullptr);
  {
    EXPECT_EQ(styleFor(out), Progress::Style::SparseLines);
    Progress progress(out, styleFor(out), 30);
    StepRecord record = sampleStep();
    for (int64_t step = 1; step <= 30; ++step) {
      record.step = step;
      progress.show(record);
    }
  }
  std::fclose(out);
  // Step 1; then one after each ten seconds of half a second a step; the last.
  EXPECT_EQ(readFile(folder.path("out")),
            "step 1/30  loss 0.3333  lr 2.0e-05  grad 0.1  1400 tok/s  ETA 0:15\n"
            "step 21/30  loss 0.3333  lr 2.0e-05  grad 0.1  1400 tok/s  ETA 0:05\n"
            "step 30/30  loss 0.3333  lr 2.0e-05  grad 0.1  1400 tok/s  ETA 0:00\n");
}

TEST(Progress, BarIsDrawnInPlace) {
  ScratchFolder folder;
  std::FILE *out = std::fopen(folder.path("out").c_str(), "w+");
  ASSERT_NE(out, nullptr);
  {
    Progress progress(out, Progress::Style::Bar, 6);
    progress.show(sampleStep());
  }
  std::fclose(out);
  EXPECT_EQ(readFile(folder.path("out")),
            "\r[############............] step 3/6  loss 0.3333  lr 2.0e-05  "
            "grad 0.1  1400 tok/s  ETA 0:02\x1b[K\n");
}

TEST(HostMemory, PeakIsNotBelowNow) {
  EXPECT_GT(residentHostMemory(), 0u);
  EXPECT_GE(peakHostMemory(), residentHostMemory());
}
