#include "runtime/io/Safetensors.h"
#include "runtime/train/ModelLoader.h"
#include "runtime/train/Parameters.h"
#include "test/unit/io/TestFiles.h"
#include "test/unit/train/ToyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using namespace fsdpq::test;
using testing::ElementsAre;

namespace {

/// Tensors in memory, of which `released` were given back.
class MemorySource final : public TensorSource {
public:
  void add(const std::string &name, std::vector<int64_t> shape,
           std::vector<float> values) {
    TensorInfo info;
    info.name = name;
    info.shape = std::move(shape);
    tensors.push_back({std::move(info), std::move(values)});
  }
  mutable std::vector<std::string> released;

  const TensorInfo *find(std::string_view name) const override {
    for (const auto &[info, values] : tensors)
      if (info.name == name)
        return &info;
    return nullptr;
  }
  std::vector<std::string> names() const override { return {}; }
  void readF32(const TensorInfo &tensor, int64_t begin, int64_t end,
               float *out) const override {
    for (const auto &[info, values] : tensors)
      if (&info == &tensor)
        std::copy(values.begin() + begin, values.begin() + end, out);
  }
  void readI64(const TensorInfo &, int64_t, int64_t, int64_t *) const override {}
  void release(const TensorInfo &tensor) const override {
    released.push_back(tensor.name);
  }
  std::string location() const override { return "memory"; }

private:
  std::vector<std::pair<TensorInfo, std::vector<float>>> tensors;
};

} // namespace

TEST(ModelLoader, EveryInstanceGetsItsTensor) {
  FunctionDevice device;
  Executor executor(toyModel(device).load(), device);
  MemorySource source;
  source.add("toy.0.scale", {2}, {1, 2});
  source.add("toy.3.scale", {2}, {3, 4});
  std::vector<int64_t> seen;
  loadModel(executor, source, /*isGguf=*/false,
            [&](int64_t done, int64_t total) {
              seen.push_back(done * 10 + total);
            });
  const auto &scale = *executor.plan().plan().parameters()->Get(0);
  EXPECT_THAT(readParameter(executor, scale, 0), ElementsAre(1, 2));
  EXPECT_THAT(readParameter(executor, scale, 1), ElementsAre(3, 4));
  EXPECT_THAT(source.released, ElementsAre("toy.0.scale", "toy.3.scale"));
  EXPECT_THAT(seen, ElementsAre(12, 22));
}

TEST(ModelLoader, WrongTensorsAreNamedBeforeAnythingIsLoaded) {
  FunctionDevice device;
  Executor executor(toyModel(device).load(), device);
  MemorySource source;
  source.add("toy.0.scale", {2}, {1, 2});
  EXPECT_EQ(errorId([&] { loadModel(executor, source, false); },
                    "no tensor 'toy.3.scale' [2]"),
            5001);
  source.add("toy.3.scale", {1, 2}, {3, 4});
  EXPECT_EQ(errorId([&] { loadModel(executor, source, false); },
                    "'toy.3.scale' has the shape [1, 2]; the model needs [2]"),
            5002);
  EXPECT_EQ(errorId([&] { loadModel(executor, source, true); },
                    "'blk.0.scale'"),
            5001);
  EXPECT_TRUE(source.released.empty());
}

// Two heads of four rows: llama.cpp stores rows 0, 2, 1, 3 of each head.
TEST(ModelLoader, GgufRowsGetHuggingFacesOrder) {
  FunctionDevice device;
  PlanBuilder b = toyModel(device);
  plan::ParameterT &scale = *b.plan.parameters[0];
  scale.layers.clear();
  scale.shape = {8, 2};
  scale.gguf_rope_heads = 2;
  const uint32_t arena = b.arena("weights", 256);
  const uint32_t whole = b.slice("whole", arena, 0, 64);
  scale.components[0]->slice = whole;
  scale.components[0]->elements = 16;
  scale.load_function = static_cast<int32_t>(b.function(
      "load_whole", body(copy(whole, static_cast<uint32_t>(b.plan.staging),
                              constant(64)))));
  scale.hf = "scale";
  scale.gguf = "scale";
  Executor executor(b.load(), device);
  MemorySource source;
  source.add("scale", {8, 2},
             {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15});
  const auto &loaded = *executor.plan().plan().parameters()->Get(0);

  loadModel(executor, source, /*isGguf=*/true);
  EXPECT_THAT(readParameter(executor, loaded, 0),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  loadModel(executor, source, /*isGguf=*/false);
  EXPECT_THAT(readParameter(executor, loaded, 0),
              ElementsAre(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
}
