#include "runtime/plan/Hardware.h"
#include "runtime/support/Error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;

static const char description[] = R"({
  "name": "a box", "devices_per_node": 4, "memory_bytes": 1000,
  "memory_bandwidth": 200, "launch_overhead": 0.5, "collective_overhead": 0,
  "matmul_flops": {"f32": 10, "bf16": 40}, "kernel_flops": 8,
  "links": {"intra_node": {"latency": 0.25, "bandwidth": 64}},
  "efficiency": {"matmul": 0.5, "memory": 0.25, "link": 0.75}
})";

/// The description with one piece of it replaced.
static std::string with(const std::string &from, const std::string &to) {
  std::string text = description;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

static void expectRefusal(const std::string &text, int id,
                          const std::string &message) {
  try {
    parseHardware(text, "box.json");
    ADD_FAILURE() << "accepted: " << text;
  } catch (const Error &error) {
    EXPECT_EQ(error.id(), id) << error.what();
    EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
    EXPECT_THAT(error.what(), testing::HasSubstr(message));
    EXPECT_THAT(error.what(), testing::HasSubstr("box.json"));
  }
}

TEST(Hardware, IsRead) {
  const Hardware box = parseHardware(description, "box.json");
  EXPECT_EQ(box.name, "a box");
  EXPECT_EQ(box.source, "");
  EXPECT_EQ(box.devicesPerNode, 4u);
  EXPECT_EQ(box.memoryBytes, 1000u);
  EXPECT_EQ(box.memoryBandwidth, 50);
  EXPECT_EQ(box.launchOverhead, 0.5);
  EXPECT_EQ(box.collectiveOverhead, 0);
  EXPECT_THAT(box.matmulFlops, testing::ElementsAre(5, 0, 20)); // f32 f64 bf16
  EXPECT_EQ(box.kernelFlops, 8);
  EXPECT_EQ(box.intraNode.latency, 0.25);
  EXPECT_EQ(box.intraNode.bandwidth, 48);
  EXPECT_FALSE(box.interNode);

  const Hardware cluster = parseHardware(
      with(R"("links": {)",
           R"("links": {"inter_node": {"latency": 0, "bandwidth": 4},)"),
      "box.json");
  ASSERT_TRUE(cluster.interNode);
  EXPECT_EQ(cluster.interNode->latency, 0);
  EXPECT_EQ(cluster.interNode->bandwidth, 3);
}

TEST(Hardware, ErrorsNameTheField) {
  expectRefusal("[]", 1205, "expected an object");
  expectRefusal("{", 1201, "");
  expectRefusal(with(R"("kernel_flops": 8,)", ""), 1204, "kernel_flops");
  expectRefusal(with(R"("latency": 0.25,)", ""), 1204, "latency");
  expectRefusal(with(R"("latency": 0.25,)", ""), 1204,
                "box.json: links: intra_node");
  expectRefusal(with(R"("memory_bytes": 1000)", R"("memory_bytes": "1 GB")"),
                1205, "memory_bytes");
  expectRefusal(with(R"("memory_bytes": 1000)", R"("memory_bytes": 0)"), 3040,
                "'memory_bytes' is 0");
  expectRefusal(with(R"("devices_per_node": 4)", R"("devices_per_node": -8)"),
                3040, "'devices_per_node' is -8");
  expectRefusal(with(R"("memory_bandwidth": 200)", R"("memory_bandwidth": 0)"),
                3040, "'memory_bandwidth' is 0");
  expectRefusal(
      with(R"("memory_bandwidth": 200)", R"("memory_bandwidth": 1e300)"), 3040,
      "'memory_bandwidth' is 1e+300");
  expectRefusal(
      with(R"("launch_overhead": 0.5)", R"("launch_overhead": -0.001)"), 3040,
      "'launch_overhead' is -0.001");
  expectRefusal(with(R"("f32": 10)", R"("f32": -10)"), 3040, "'f32' is -10");
  expectRefusal(with(R"("matmul": 0.5)", R"("matmul": 1.5)"), 3040,
                "expected more than 0, at most 1");
  expectRefusal(with(R"("matmul": 0.5)", R"("matmul": 0)"), 3040,
                "'matmul' is 0");
  expectRefusal(with(R"("name")", R"("speed": 1, "name")"), 3041,
                "unknown field 'speed'");
  expectRefusal(with(R"("bf16")", R"("fp16")"), 3041, "unknown field 'fp16'");
  expectRefusal(with(R"("intra_node")", R"("nvlink")"), 3041,
                "known are intra_node, inter_node");
}

TEST(Hardware, ShippedDescriptionsAreSound) {
  const std::string folder = FSDPQ_TEST_INPUTS "/../../tools/hardware/";
  const Hardware h200 = readHardware(folder + "h200-nvlink.json");
  EXPECT_EQ(h200.devicesPerNode, 8u);
  EXPECT_DOUBLE_EQ(h200.matmulFlops[static_cast<size_t>(plan::DType::BF16)],
                   7.9e14 * 0.87);
  const Hardware pcie = readHardware(folder + "rtx4090-pcie.json");
  EXPECT_EQ(pcie.memoryBytes, uint64_t(24) << 30);
  EXPECT_NE(pcie.source, "");
  EXPECT_NE(readHardware(folder + "cpu-example.json").source, "");
}
