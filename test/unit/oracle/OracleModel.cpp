#include "test/unit/oracle/OracleModel.h"

#include "runtime/io/Safetensors.h"
#include "runtime/train/MicroStep.h"
#include "runtime/train/ModelLoader.h"
#include "runtime/train/Parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

namespace fsdpq::test {

std::string oraclePath(const std::string &name) {
  return std::string(FSDPQ_TEST_INPUTS) + "/oracle/" + name;
}

std::string readText(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

CompileOptions llamaOptions(const std::string &model,
                            std::vector<std::string> programs,
                            const std::string &config) {
  CompileOptions options;
  options.models = std::string(FSDPQ_TEST_INPUTS) + "/../../models/llama.mlir";
  options.configText = readText(oraclePath(model + "/" + config));
  options.tokens = 128;
  options.programs = std::move(programs);
  options.trainAll = true;
  options.optimizerOptions = {
      {"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-5}, {"weight_decay", 0.1}};
  return options;
}

std::vector<uint8_t> compileBytes(const CompileOptions &options) {
  CompileResult result = compileModel(options);
  if (!result.succeeded)
    throw std::runtime_error(result.diagnostics);
  return std::move(result.plan);
}

std::shared_ptr<const rt::LoadedPlan>
compilePlan(const CompileOptions &options) {
  return rt::LoadedPlan::fromBytes(compileBytes(options), "compiled");
}

void OracleModel::load(const std::string &folder) {
  auto source = rt::openSafetensors(folder);
  rt::loadModel(executor_, *source, /*isGguf=*/false);
}

double OracleModel::microStep(const rt::MicroBatch &batch, double lossWeight) {
  rt::LossCell loss(executor_);
  loss.clear();
  rt::MicroStep(executor_, "micro_step").run(batch, lossWeight);
  return loss.read();
}

double OracleModel::meanLossStep(const rt::MicroBatch &batch) {
  clearGradients();
  return microStep(batch, rt::meanLossWeight(batch, 1));
}

std::vector<float> OracleModel::logits(const rt::MicroBatch &batch, int32_t row,
                                       size_t vocabulary) {
  executor_.writeInput(executor_.input("last_row"), &row, sizeof row);
  rt::MicroStep(executor_, "logits").run(batch, 0);
  std::vector<float> values(vocabulary);
  executor_.readOutput(executor_.output("logits"), values.data(),
                       vocabulary * sizeof(float));
  return values;
}

/// Calls `visit(name, parameter, ordinal)` for every instance that `wanted`
/// accepts.
template <typename Wanted, typename Visit>
static void forEachInstance(const plan::Plan &plan, Wanted wanted, Visit visit) {
  for (const plan::Parameter *parameter : *plan.parameters())
    if (wanted(*parameter))
      for (int64_t i = 0; i < rt::instanceCount(plan, *parameter); ++i)
        visit(rt::instanceName(*parameter->hf(), plan, *parameter, i), *parameter,
              i);
}

static bool isPlain(const plan::Parameter &parameter) {
  return parameter.scheme()->str() == "f32";
}

TensorMap OracleModel::gradients() const {
  TensorMap result;
  const plan::Plan &plan = executor_.plan().plan();
  forEachInstance(
      plan,
      [&](const plan::Parameter &parameter) {
        return rt::hasGradient(plan, parameter);
      },
      [&](const std::string &name, const plan::Parameter &parameter, int64_t i) {
        result[name] = rt::readGradient(executor_, parameter, i);
      });
  return result;
}

void OracleModel::clearGradients() {
  const plan::Plan &plan = executor_.plan().plan();
  forEachInstance(
      plan,
      [&](const plan::Parameter &parameter) {
        return rt::hasGradient(plan, parameter);
      },
      [&](const std::string &, const plan::Parameter &parameter, int64_t i) {
        const std::vector<float> zeros(
            static_cast<size_t>(rt::elementCount(parameter)));
        rt::writeGradient(executor_, parameter, i, zeros.data());
      });
}

TensorMap OracleModel::parameters() const {
  TensorMap result;
  forEachInstance(
      executor_.plan().plan(), isPlain,
      [&](const std::string &name, const plan::Parameter &parameter, int64_t i) {
        result[name] = rt::readParameter(executor_, parameter, i);
      });
  return result;
}

void OracleModel::setParameters(const TensorMap &values) {
  forEachInstance(
      executor_.plan().plan(), isPlain,
      [&](const std::string &name, const plan::Parameter &parameter, int64_t i) {
        if (auto found = values.find(name); found != values.end())
          rt::writeParameter(executor_, parameter, i, found->second.data());
      });
}

float OracleModel::optimizerStep(int64_t number, double lr, double maxGradNorm) {
  const auto set = [&](const char *name, double value) {
    rt::OptionalScalar(executor_, name).set(value);
  };
  set("lr", lr);
  set("max_grad_norm", maxGradNorm);
  set("bias_correction1", 1 - std::pow(0.9, static_cast<double>(number)));
  set("bias_correction2", 1 - std::pow(0.95, static_cast<double>(number)));
  executor_.run(executor_.function("optimizer_step"));
  float norm;
  executor_.readOutput(executor_.output("grad_norm"), &norm, sizeof norm);
  return norm;
}

void expectClose(const std::vector<float> &actual,
                 const std::vector<float> &wanted, double rtol, double atol,
                 const std::string &what) {
  ASSERT_EQ(actual.size(), wanted.size()) << what;
  size_t wrong = 0, worst = 0;
  double excess = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double error = std::abs(double(actual[i]) - double(wanted[i]));
    const double bound = atol + rtol * std::abs(double(wanted[i]));
    if (error <= bound) // false for NaN
      continue;
    ++wrong;
    if (!(error - bound <= excess)) {
      excess = error - bound;
      worst = i;
    }
  }
  EXPECT_EQ(wrong, 0u) << what << ": of " << wanted.size() << "; element "
                       << worst << " is " << actual[worst] << ", wanted "
                       << wanted[worst];
}

void expectClose(const TensorMap &actual, const TensorMap &wanted, double rtol,
                 double atol) {
  ASSERT_EQ(actual.size(), wanted.size());
  for (const auto &[name, values] : wanted) {
    ASSERT_TRUE(actual.contains(name)) << name;
    expectClose(actual.at(name), values, rtol, atol, name);
  }
}

std::vector<rt::Row> randomRows(const std::vector<int> &lengths, int vocabulary,
                                unsigned seed, int masked) {
  std::mt19937 generator(seed);
  std::vector<rt::Row> rows;
  for (const int length : lengths) {
    rt::Row row;
    for (int i = 0; i < length; ++i) {
      row.ids.push_back(static_cast<int32_t>(
          generator() % static_cast<unsigned>(vocabulary)));
      row.labels.push_back(i < masked ? rt::kIgnoredLabel : row.ids.back());
    }
    rows.push_back(row);
  }
  return rows;
}

} // namespace fsdpq::test
