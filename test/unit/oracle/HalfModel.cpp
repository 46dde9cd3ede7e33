//===- HalfModel.cpp - Checkpoints computed in bf16 -----------------------===//
//
// The logits in bf16 are a reference library's, computed in bf16 throughout;
// gradients are held against those in f32.
//
//===----------------------------------------------------------------------===//

#include "test/unit/oracle/OracleModel.h"

#include "runtime/io/Json.h"
#include "runtime/io/Safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace fsdpq;
using namespace fsdpq::test;

namespace {
constexpr const char *model = "llama_gqa";

/// The two rows of the golden data.
std::vector<rt::Row> readRows(const rt::SafetensorsSource &golden) {
  const rt::TensorInfo &ids = *golden.find("input_ids");
  const rt::TensorInfo &labels = *golden.find("labels");
  const int64_t length = ids.shape[1];
  auto read = [&](const rt::TensorInfo &tensor, int64_t row) {
    std::vector<int64_t> wide(static_cast<size_t>(length));
    golden.readI64(tensor, row * length, (row + 1) * length, wide.data());
    return std::vector<int32_t>(wide.begin(), wide.end());
  };
  std::vector<rt::Row> rows;
  for (int64_t row = 0; row < ids.shape[0]; ++row) {
    rt::Row &added = rows.emplace_back();
    added.ids = read(ids, row);
    added.labels = read(labels, row);
  }
  return rows;
}

std::vector<float> readAll(const rt::SafetensorsSource &source,
                           const std::string &name) {
  const rt::TensorInfo &tensor = *source.find(name);
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  source.readF32(tensor, 0, tensor.elements(), values.data());
  return values;
}

CompileOptions halfOptions(std::vector<std::string> programs) {
  CompileOptions options = llamaOptions(model, std::move(programs));
  options.precision = "bf16";
  return options;
}

/// |a - b| / |b|, as vectors.
double relativeDistance(const std::vector<float> &a,
                        const std::vector<float> &b) {
  double difference = 0, length = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(double(a[i]) - double(b[i]), 2);
    length += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / length);
}

/// Of the elements of one vector beside those of another.
struct Errors {
  Errors(const std::vector<float> &a, const std::vector<float> &b) {
    for (size_t i = 0; i < b.size(); ++i) {
      const double error = double(a[i]) - double(b[i]);
      mean += std::abs(error) / static_cast<double>(b.size());
      bias += error / static_cast<double>(b.size());
      most = std::max(most, std::abs(error));
    }
  }
  double mean = 0, bias = 0, most = 0;
};

class HalfModel : public testing::Test {
protected:
  const rt::SafetensorsSource expected{
      oraclePath(std::string(model) + "/expected.safetensors")};
  const rt::SafetensorsSource grads{
      oraclePath(std::string(model) + "/grads.safetensors")};
  const rt::MicroBatch batch = rt::packRows(readRows(expected), 512);
};
} // namespace

TEST_F(HalfModel, LogitsOfEveryToken) {
  OracleModel half(compilePlan(halfOptions({"logits"})));
  half.load(oraclePath(model));
  const std::vector<float> reference = readAll(expected, "logits_bf16"),
                           exact = readAll(expected, "logits");
  const size_t vocabulary = exact.size() / static_cast<size_t>(batch.tokens);
  std::vector<float> logits;
  for (int64_t t = 0; t < batch.tokens; ++t) {
    const std::vector<float> row =
        half.logits(batch, static_cast<int32_t>(t), vocabulary);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  // The reference rounds in other places (its own largest distance from f32 is
  // 0.12): both are about as far from f32, and no farther from each other.
  const Errors own(logits, exact), theirs(reference, exact),
      apart(logits, reference);
  EXPECT_LE(own.mean, 1.1 * theirs.mean);
  EXPECT_LE(own.most, 1.1 * theirs.most);
  EXPECT_LE(apart.mean, 0.02);
  EXPECT_LE(apart.most, 0.12);
  EXPECT_LE(std::abs(own.bias), 0.001); // no rounding to one side
}

TEST_F(HalfModel, LossAndGradients) {
  OracleModel half(compilePlan(halfOptions({"micro_step"})));
  half.load(oraclePath(model));
  const double loss =
      rt::readJsonFile(oraclePath("index.json")).at(model).at("loss");
  EXPECT_NEAR(half.meanLossStep(batch), loss, 5e-3 * loss);
  const TensorMap gradients = half.gradients();
  for (const std::string &name : grads.names())
    EXPECT_LE(relativeDistance(gradients.at(name), readAll(grads, name)), 0.05)
        << name;
}

TEST_F(HalfModel, CheckpointingChangesNoGradient) {
  TensorMap kept, recomputed;
  for (const bool checkpointing : {false, true}) {
    CompileOptions options = halfOptions({"micro_step"});
    options.checkpointing = checkpointing;
    OracleModel half(compilePlan(options));
    half.load(oraclePath(model));
    half.meanLossStep(batch);
    (checkpointing ? recomputed : kept) = half.gradients();
  }
  EXPECT_EQ(kept, recomputed);
}

/// The f32 weights move by less than a step of bf16, and stay there.
TEST_F(HalfModel, TrainedWeightsAreF32) {
  OracleModel half(compilePlan(halfOptions({"micro_step"})));
  half.load(oraclePath(model));
  const TensorMap before = half.parameters();
  half.meanLossStep(batch);
  half.optimizerStep(1, /*lr=*/1e-6);
  const TensorMap after = half.parameters();
  ASSERT_EQ(before.size(), after.size());
  for (const auto &[name, values] : before) {
    const double moved = relativeDistance(after.at(name), values);
    EXPECT_GT(moved, 0) << name;
    EXPECT_LT(moved, 1e-3) << name;
  }
}
