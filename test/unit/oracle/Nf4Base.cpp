//===- Nf4Base.cpp - The stored form of a quantised checkpoint ------------===//
//
// Tolerances of the golden data: codes exact, at most 0.5 % of the codes of
// scales off by one, offset 1 ulp, nested_absmax 2 ulp. A nested scale is the
// largest distance of a scale to the offset, so an offset that differs within
// its tolerance (the order of its sum is free) moves the nested scale by as much
// on top.
//
//===----------------------------------------------------------------------===//

#include "test/unit/oracle/OracleModel.h"

#include "runtime/io/Safetensors.h"
#include "runtime/train/Parameters.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace fsdpq;
using namespace fsdpq::test;

namespace {
/// The distance to the next float away from zero.
double ulp(float value) {
  return double(std::nextafter(std::abs(value), HUGE_VALF)) -
         double(std::abs(value));
}

class Nf4Base : public testing::Test {
protected:
  static CompileOptions options() {
    CompileOptions result = llamaOptions("llama_gqa", {"micro_step"});
    result.trainAll = false;
    result.loraRank = 8;
    result.loraScale = 2;
    result.loraTargets = {"all"};
    result.quantScheme = "!qt.nf4<block = 64, scale = dq<256>>";
    return result;
  }

  template <typename T>
  std::vector<T> stored(OracleModel &model, const plan::Parameter &parameter,
                        const plan::Component &component, int64_t ordinal) {
    const plan::Plan &plan = model.executor().plan().plan();
    std::vector<T> values(component.elements());
    model.executor().readSlice(rt::unitOf(plan, parameter).range(), ordinal,
                               values.data(), values.size() * sizeof(T),
                               component.offset());
    return values;
  }

  std::vector<uint8_t> goldenBytes(const std::string &name) {
    const rt::TensorInfo *tensor = golden.find(name);
    if (!tensor)
      return {};
    const unsigned char *raw = golden.raw(*tensor);
    return {raw, raw + tensor->place.bytes};
  }

  std::vector<float> goldenFloats(const std::string &name) {
    const rt::TensorInfo *tensor = golden.find(name);
    if (!tensor)
      return {};
    std::vector<float> values(static_cast<size_t>(tensor->elements()));
    golden.readF32(*tensor, 0, tensor->elements(), values.data());
    return values;
  }

  /// `slack`: what the values may differ by beyond `bound` ulps.
  void expectWithin(const std::vector<float> &actual,
                    const std::vector<float> &wanted, int bound, double slack,
                    const std::string &what) {
    ASSERT_EQ(actual.size(), wanted.size()) << what;
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_LE(std::abs(double(actual[i]) - double(wanted[i])),
                bound * ulp(wanted[i]) + slack)
          << what << "[" << i << "]: " << actual[i] << ", wanted " << wanted[i];
  }

  rt::SafetensorsSource golden{oraclePath("quantized_base.safetensors")};
  int64_t scaleCodes = 0, scaleCodesOff = 0;
};
} // namespace

TEST_F(Nf4Base, EqualsTheReference) {
  OracleModel model(compilePlan(options()));
  model.load(oraclePath("llama_gqa"));
  int64_t quantised = 0;
  const plan::Plan &plan = model.executor().plan().plan();
  for (const plan::Parameter *parameter : *plan.parameters()) {
    if (parameter->components()->size() == 1)
      continue;
    for (int64_t i = 0; i < rt::instanceCount(plan, *parameter); ++i) {
      std::string module = rt::instanceName(*parameter->hf(), plan, *parameter, i);
      module.resize(module.size() - std::string(".weight").size());
      ++quantised;
      double offsetError = 0;
      for (const plan::Component *component : *parameter->components())
        if (component->name()->str() == "offset")
          offsetError = std::abs(
              double(stored<float>(model, *parameter, *component, i).at(0)) -
              double(goldenFloats(module + ".offset").at(0)));
      for (const plan::Component *component : *parameter->components()) {
        const std::string part = component->name()->str();
        const std::string what = module + "." + part;
        if (part == "codes") {
          EXPECT_EQ(stored<uint8_t>(model, *parameter, *component, i),
                    goldenBytes(module + ".packed"))
              << what;
        } else if (part == "absmax_u8") {
          const auto actual = stored<uint8_t>(model, *parameter, *component, i);
          const auto wanted = goldenBytes(what);
          ASSERT_EQ(actual.size(), wanted.size()) << what;
          for (size_t k = 0; k < wanted.size(); ++k) {
            ASSERT_LE(std::abs(actual[k] - wanted[k]), 1) << what;
            ++scaleCodes;
            scaleCodesOff += actual[k] != wanted[k];
          }
        } else if (part == "nested_absmax") {
          expectWithin(stored<float>(model, *parameter, *component, i), goldenFloats(what),
                       2, offsetError, what);
        } else if (part == "offset") {
          expectWithin(stored<float>(model, *parameter, *component, i), goldenFloats(what),
                       1, 0, what);
        } else {
          ADD_FAILURE() << "unknown component " << what;
        }
      }
    }
  }
  EXPECT_EQ(quantised, 3 * 7); // layers x projections
  EXPECT_EQ(scaleCodes, 1728);
  EXPECT_LE(double(scaleCodesOff), 0.005 * double(scaleCodes));
}
