//===- ModelOracle.cpp - Logits, losses and gradients of checkpoints ------===//
//
// The golden data are a reference library's; see the README of the inputs.
//
//===----------------------------------------------------------------------===//

#include "test/unit/oracle/OracleModel.h"

#include "runtime/io/Json.h"
#include "runtime/io/Safetensors.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace fsdpq;
using namespace fsdpq::test;

namespace {
/// The golden data of one model.
struct Golden {
  explicit Golden(const std::string &name)
      : expected(oraclePath(name + "/expected.safetensors")),
        grads(oraclePath(name + "/grads.safetensors")),
        index(rt::readJsonFile(oraclePath("index.json")).at(name)) {
    const rt::TensorInfo &ids = *expected.find("input_ids");
    const rt::TensorInfo &labels = *expected.find("labels");
    const int64_t length = ids.shape[1];
    for (int64_t i = 0; i < ids.shape[0]; ++i) {
      rt::Row row;
      row.ids = readIds(ids, i * length, length);
      row.labels = readIds(labels, i * length, length);
      rows.push_back(row);
    }
    vocabulary = static_cast<size_t>(expected.find("logits")->shape[2]);
  }

  std::vector<int32_t> readIds(const rt::TensorInfo &tensor, int64_t begin,
                               int64_t count) const {
    std::vector<int64_t> wide(static_cast<size_t>(count));
    expected.readI64(tensor, begin, begin + count, wide.data());
    return {wide.begin(), wide.end()};
  }

  /// Of the token `t` of all rows end to end.
  std::vector<float> logits(int64_t t) const {
    std::vector<float> values(vocabulary);
    const auto size = static_cast<int64_t>(vocabulary);
    expected.readF32(*expected.find("logits"), t * size, (t + 1) * size,
                     values.data());
    return values;
  }

  rt::SafetensorsSource expected, grads;
  nlohmann::json index;
  std::vector<rt::Row> rows;
  size_t vocabulary;
};

class ModelOracle : public testing::TestWithParam<const char *> {
protected:
  ModelOracle() : name(GetParam()), golden(name) {}

  void expectGoldenGradients(const TensorMap &gradients) const {
    for (const std::string &tensor : golden.grads.names()) {
      ASSERT_TRUE(gradients.contains(tensor)) << tensor;
      const rt::TensorInfo &info = *golden.grads.find(tensor);
      std::vector<float> wanted(static_cast<size_t>(info.elements()));
      golden.grads.readF32(info, 0, info.elements(), wanted.data());
      expectClose(gradients.at(tensor), wanted, 1e-3, 1e-5, tensor);
    }
    // Every parameter has a norm, also those whose gradient is not stored.
    const nlohmann::json &norms = golden.index.at("grad_l2");
    EXPECT_EQ(gradients.size(), norms.size());
    for (const auto &[tensor, values] : gradients) {
      double sum = 0;
      for (const float value : values)
        sum += double(value) * double(value);
      const double wanted = norms.at(tensor).get<double>();
      EXPECT_NEAR(std::sqrt(sum), wanted, 1e-5 + 1e-3 * wanted) << tensor;
    }
  }

  void expectGolden(const CompileOptions &options) {
    OracleModel model(compilePlan(options));
    model.load(oraclePath(name));
    const double loss = golden.index.at("loss").get<double>();
    const rt::MicroBatch batch = rt::packRows(golden.rows, 512);
    EXPECT_NEAR(model.meanLossStep(batch), loss, 1e-5 * loss);
    expectGoldenGradients(model.gradients());
  }

  const std::string name;
  const Golden golden;
};
} // namespace

TEST_P(ModelOracle, LogitsOfEveryToken) {
  for (const char *config : {"config.json", "config.legacy.json"}) {
    OracleModel model(compilePlan(llamaOptions(name, {"logits"}, config)));
    model.load(oraclePath(name));
    const rt::MicroBatch batch = rt::packRows(golden.rows, 512);
    for (int64_t t = 0; t < batch.tokens; ++t)
      expectClose(model.logits(batch, static_cast<int32_t>(t),
                               golden.vocabulary),
                  golden.logits(t), 1e-4, 1e-4,
                  std::string(config) + ", token " + std::to_string(t));
  }
}

TEST_P(ModelOracle, LogitsDoNotDependOnOtherRows) {
  OracleModel model(compilePlan(llamaOptions(name, {"logits"})));
  model.load(oraclePath(name));
  int64_t token = 0;
  for (const rt::Row &row : golden.rows) {
    const rt::MicroBatch batch = rt::packRows({&row, 1}, 512);
    for (int64_t t = 0; t < batch.tokens; ++t)
      expectClose(model.logits(batch, static_cast<int32_t>(t),
                               golden.vocabulary),
                  golden.logits(token++), 1e-4, 1e-4,
                  "token " + std::to_string(t));
  }
}

TEST_P(ModelOracle, LossAndGradients) {
  expectGolden(llamaOptions(name, {"micro_step", "logits"}));
}

TEST_P(ModelOracle, LossAndGradientsOfTheLegacyConfiguration) {
  expectGolden(llamaOptions(name, {"micro_step"}, "config.legacy.json"));
}

TEST_P(ModelOracle, CheckpointingChangesNoGradient) {
  CompileOptions options = llamaOptions(name, {"micro_step"});
  const rt::MicroBatch batch = rt::packRows(golden.rows, 512);
  TensorMap kept, recomputed;
  for (const bool checkpointing : {false, true}) {
    options.checkpointing = checkpointing;
    OracleModel model(compilePlan(options));
    model.load(oraclePath(name));
    model.meanLossStep(batch);
    (checkpointing ? recomputed : kept) = model.gradients();
  }
  expectGoldenGradients(recomputed);
  // The same kernels on the same values.
  EXPECT_EQ(kept, recomputed);
}

TEST_P(ModelOracle, RowsOneAtATimeAgree) {
  OracleModel model(compilePlan(llamaOptions(name, {"micro_step"})));
  model.load(oraclePath(name));
  const rt::MicroBatch together = rt::packRows(golden.rows, 512);
  const double weight = 1.0 / static_cast<double>(together.labelled);
  model.clearGradients();
  double loss = 0;
  for (const rt::Row &row : golden.rows)
    loss += model.microStep(rt::packRows({&row, 1}, 512), weight);
  const double wanted = golden.index.at("loss").get<double>();
  EXPECT_NEAR(loss, wanted, 1e-5 * wanted);
  const TensorMap apart = model.gradients();
  expectGoldenGradients(apart);
  model.meanLossStep(together);
  expectClose(apart, model.gradients(), 1e-4, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, ModelOracle,
                         testing::Values("llama_mha", "llama_gqa",
                                         "llama_tied_sharded"),
                         [](const auto &info) { return info.param; });
