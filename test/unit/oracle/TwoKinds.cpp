//===- TwoKinds.cpp - Stacks whose layers are of two kinds ----------------===//

#include "test/unit/oracle/ReferenceModel.h"

#include "runtime/train/Parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace fsdpq;
using namespace fsdpq::test;

namespace {
/// Layers in the order of the letters: s sliding, f full.
class TwoKinds : public testing::TestWithParam<const char *> {
protected:
  TwoKinds() {
    shape = {32, 48, 4, 2, 61, 1e-5, 1e4, 19, {}};
    std::string types;
    for (const char *kind = GetParam(); *kind; ++kind) {
      shape.sliding.push_back(*kind == 's');
      types += types.empty() ? "" : ", ";
      types += *kind == 's' ? "\"sliding_attention\"" : "\"full_attention\"";
    }
    options.models = oraclePath("two_kinds.mlir");
    options.configText =
        R"({"architectures": ["TwoKinds"], "hidden_size": 32,
            "intermediate_size": 48, "num_attention_heads": 4,
            "num_key_value_heads": 2, "vocab_size": 61, "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0, "sliding_window": 19,
            "num_hidden_layers": )" +
        std::to_string(shape.sliding.size()) + ", \"layer_types\": [" + types +
        "]}";
    options.tokens = 128;
    options.programs = {"micro_step"};
    options.trainAll = true;
    options.optimizer = "sgd";
  }

  /// Values that f32 holds, of a size that keeps activations near 1.
  TensorMap randomParameters(const OracleModel &model) {
    std::mt19937 generator(5);
    TensorMap values = model.parameters();
    for (auto &[name, tensor] : values) {
      const bool isNorm = name.ends_with("norm");
      std::uniform_real_distribution<float> distribution(
          isNorm ? 0.5f : -0.3f, isNorm ? 1.5f : 0.3f);
      for (float &value : tensor)
        value = distribution(generator);
    }
    return values;
  }

  static ReferenceParameters widen(const TensorMap &values) {
    ReferenceParameters result;
    for (const auto &[name, tensor] : values)
      result[name].assign(tensor.begin(), tensor.end());
    return result;
  }

  ReferenceShape shape;
  CompileOptions options;
  const std::vector<rt::Row> rows = randomRows({70, 3, 45}, 61, 11, 2);
};
} // namespace

TEST_P(TwoKinds, LossIsTheReferences) {
  OracleModel model(compilePlan(options));
  const TensorMap values = randomParameters(model);
  model.setParameters(values);
  const double wanted = referenceLoss(shape, widen(values), rows);
  EXPECT_NEAR(model.meanLossStep(rt::packRows(rows, 512)), wanted,
              1e-5 * wanted);
  // The window matters, or this would prove little.
  ReferenceShape blind = shape;
  blind.window = 1000;
  EXPECT_GT(std::abs(referenceLoss(blind, widen(values), rows) - wanted),
            1e-3 * wanted);
}

/// Along each parameter's own gradient, where the objective changes most.
TEST_P(TwoKinds, GradientsAreTheReferences) {
  OracleModel model(compilePlan(options));
  const TensorMap values = randomParameters(model);
  model.setParameters(values);
  model.meanLossStep(rt::packRows(rows, 512));
  const TensorMap gradients = model.gradients();
  EXPECT_EQ(gradients.size(), values.size());
  for (const auto &[name, gradient] : gradients) {
    double squares = 0;
    for (const float value : gradient)
      squares += double(value) * double(value);
    const double norm = std::sqrt(squares);
    ASSERT_GT(norm, 0) << name;
    constexpr double h = 1e-3;
    double difference = 0;
    for (const int side : {1, -1}) {
      ReferenceParameters moved = widen(values);
      for (size_t i = 0; i < gradient.size(); ++i)
        moved[name][i] += side * h * double(gradient[i]) / norm;
      difference += side * referenceLoss(shape, moved, rows) / (2 * h);
    }
    EXPECT_NEAR(difference, norm, 1e-5 + 1e-3 * norm) << name;
  }
}

TEST_P(TwoKinds, CheckpointingChangesNoGradient) {
  TensorMap gradients[2];
  for (const bool checkpointing : {false, true}) {
    options.checkpointing = checkpointing;
    OracleModel model(compilePlan(options));
    model.setParameters(randomParameters(model));
    model.meanLossStep(rt::packRows(rows, 512));
    gradients[checkpointing] = model.gradients();
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST_P(TwoKinds, TrainingLowersTheLoss) {
  OracleModel model(compilePlan(options));
  model.setParameters(randomParameters(model));
  const rt::MicroBatch batch = rt::packRows(rows, 512);
  const double first = model.meanLossStep(batch);
  double last = first;
  for (int step = 1; step <= 10; ++step) {
    model.optimizerStep(step, 0.1, 1.0);
    last = model.meanLossStep(batch);
  }
  EXPECT_LT(last, first - 0.2);
}

INSTANTIATE_TEST_SUITE_P(Orders, TwoKinds,
                         testing::Values("sfsf", "sffs", "fs"),
                         [](const auto &info) { return info.param; });
