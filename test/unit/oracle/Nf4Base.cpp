//===- Nf4Base.cpp - The stored form of a quantised checkpoint ------------===//

#include "test/unit/oracle/OracleModel.h"

#include "runtime/io/Safetensors.h"
#include "runtime/train/Parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace fsdpq;
using namespace fsdpq::test;

namespace {
/// Distance in units of the last place; both are positive and finite.
int64_t ulps(float a, float b) {
  int32_t left, right;
  std::memcpy(&left, &a, sizeof left);
  std::memcpy(&right, &b, sizeof right);
  return std::abs(int64_t{left} - int64_t{right});
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
  std::vector<T> stored(OracleModel &model, const plan::Component &component,
                        int64_t ordinal) {
    std::vector<T> values(component.elements());
    model.executor().readSlice(component.slice(), ordinal, values.data(),
                               values.size() * sizeof(T));
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

  void expectWithin(const std::vector<float> &actual,
                    const std::vector<float> &wanted, int64_t bound,
                    const std::string &what) {
    ASSERT_EQ(actual.size(), wanted.size()) << what;
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_LE(ulps(actual[i], wanted[i]), bound)
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
  for (const plan::Parameter *parameter :
       *model.executor().plan().plan().parameters()) {
    if (parameter->components()->size() == 1)
      continue;
    for (int64_t i = 0; i < rt::instanceCount(*parameter); ++i) {
      std::string module = rt::instanceName(*parameter->hf(), *parameter, i);
      module.resize(module.size() - std::string(".weight").size());
      ++quantised;
      for (const plan::Component *component : *parameter->components()) {
        const std::string part = component->name()->str();
        const std::string what = module + "." + part;
        if (part == "codes") {
          EXPECT_EQ(stored<uint8_t>(model, *component, i),
                    goldenBytes(module + ".packed"))
              << what;
        } else if (part == "absmax_u8") {
          const auto actual = stored<uint8_t>(model, *component, i);
          const auto wanted = goldenBytes(what);
          ASSERT_EQ(actual.size(), wanted.size()) << what;
          for (size_t k = 0; k < wanted.size(); ++k) {
            ASSERT_LE(std::abs(actual[k] - wanted[k]), 1) << what;
            ++scaleCodes;
            scaleCodesOff += actual[k] != wanted[k];
          }
        } else if (part == "nested_absmax") {
          expectWithin(stored<float>(model, *component, i), goldenFloats(what),
                       2, what);
        } else if (part == "offset") {
          expectWithin(stored<float>(model, *component, i), goldenFloats(what),
                       1, what);
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
