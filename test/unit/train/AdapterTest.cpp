#include "runtime/train/Adapter.h"
#include "runtime/comm/Solo.h"
#include "runtime/io/Safetensors.h"
#include "runtime/train/AdapterInit.h"
#include "runtime/train/Parameters.h"
#include "test/unit/io/TestFiles.h"
#include "test/unit/train/ToyRanks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using namespace fsdpq::test;
using testing::ElementsAre;

namespace {

class Adapter : public testing::Test {
protected:
  FunctionDevice device;
  std::unique_ptr<Communicator> solo = makeSolo();
  Executor executor{toyModel(device).load(), device, *solo};
  ScratchFolder folder;

  const plan::Parameter &parameter(uint32_t number) {
    return *executor.plan().plan().parameters()->Get(number);
  }
  std::vector<float> all() {
    std::vector<float> values;
    for (uint32_t number : {1, 2})
      for (int64_t i : {0, 1})
        for (float value : readParameter(executor, parameter(number), i))
          values.push_back(value);
    return values;
  }
  void setAll(std::vector<float> values) {
    writeParameter(executor, parameter(1), 0, &values[0]);
    writeParameter(executor, parameter(1), 1, &values[1]);
    writeParameter(executor, parameter(2), 0, &values[2]);
    writeParameter(executor, parameter(2), 1, &values[4]);
  }
};

const std::string module0 = "base_model.model.layers.0.attn.q_proj.";
const std::string module3 = "base_model.model.layers.3.attn.q_proj.";

/// The adapter of the toy with every name spelt by `spell`.
std::vector<NamedTensor>
toyAdapter(const float *values,
           const std::function<std::string(std::string)> &spell) {
  return {{spell(module0 + "lora_A.weight"), DType::F32, {1, 1}, values},
          {spell(module3 + "lora_A.weight"), DType::F32, {1, 1}, values + 1},
          {spell(module0 + "lora_B.weight"), DType::F32, {2, 1}, values + 2},
          {spell(module3 + "lora_B.weight"), DType::F32, {2, 1}, values + 4}};
}

std::string asIs(std::string name) { return name; }

} // namespace

TEST_F(Adapter, SavedNamesShapesAndValues) {
  setAll({1, 2, 3, 4, 5, 6});
  AdapterConfig config;
  config.rank = 99; // the plan knows better
  config.alpha = 16;
  config.baseModel = "toy";
  saveAdapter(executor, config, folder.path());

  const AdapterConfig saved = readAdapterConfig(folder.path());
  EXPECT_EQ(saved.rank, 1);
  EXPECT_EQ(saved.alpha, 16);
  EXPECT_THAT(saved.targets, ElementsAre("q_proj"));

  const auto source = openSafetensors(folder.path(adapterWeightsFile));
  EXPECT_EQ(source->names().size(), 4u);
  const TensorInfo *b = source->find(module3 + "lora_B.weight");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, DType::F32);
  EXPECT_THAT(b->shape, ElementsAre(2, 1));
  float values[2];
  source->readF32(*b, 0, 2, values);
  EXPECT_THAT(values, ElementsAre(5, 6));
}

TEST_F(Adapter, RoundTrip) {
  initialiseAdapters(executor, 1);
  setAll({1, -2, 0.1f, 4, 5e-20f, 6});
  const std::vector<float> before = all();
  saveAdapter(executor, AdapterConfig(), folder.path());
  setAll({0, 0, 0, 0, 0, 0});
  loadAdapter(executor, folder.path());
  EXPECT_EQ(all(), before);
}

namespace {

/// A plan of rank-4 adapters of three modules of layers 0 to 2.
PlanBuilder peftPlan(uint32_t ranks, uint32_t shards) {
  constexpr uint64_t unitBytes = 6 * 1024;
  PlanBuilder b;
  b.mesh(ranks, shards);
  const uint64_t range = unitBytes / shards;
  const uint32_t unit =
      b.unit("adapters", unitBytes,
             b.slice("adapters", b.arena("adapters", 3 * range), 0, range, 0,
                     static_cast<int64_t>(range)),
             {0, 1, 2});
  uint64_t offset = 256; // so that the ranges' borders cut tensors
  auto add = [&](const std::string &factor, std::vector<int64_t> shape) {
    const auto bytes = static_cast<uint64_t>(shape[0] * shape[1]) * 4;
    addParameter(b, factor,
                 "base_model.model.model.layers.{layer}.self_attn." + factor +
                     ".weight",
                 std::move(shape), unit, offset);
    offset += bytes;
  };
  for (const auto &[module, out] :
       {std::pair("o_proj", 64), {"q_proj", 64}, {"v_proj", 32}}) {
    add(std::string(module) + ".lora_A", {4, 64});
    add(std::string(module) + ".lora_B", {out, 4});
  }
  return b;
}

} // namespace

// A file that PEFT wrote comes out again with the same tensors.
TEST(PeftAdapter, RoundTrip) {
  const std::string original = FSDPQ_TEST_INPUTS "/train/peft/rslora_r4";
  FunctionDevice device;
  const auto solo = makeSolo();
  Executor executor(peftPlan(1, 1).load(), device, *solo);
  loadAdapter(executor, original);
  ScratchFolder folder;
  const AdapterConfig config = readAdapterConfig(original);
  saveAdapter(executor, config, folder.path());

  const auto before = openSafetensors(original + "/adapter_model.safetensors");
  const auto after = openSafetensors(folder.path(adapterWeightsFile));
  ASSERT_EQ(after->names().size(), 18u);
  ASSERT_EQ(before->names().size(), 18u);
  for (const std::string &name : before->names()) {
    const TensorInfo &was = *before->find(name), *is = after->find(name);
    ASSERT_NE(is, nullptr) << name;
    EXPECT_EQ(is->shape, was.shape) << name;
    EXPECT_EQ(std::memcmp(after->raw(*is), before->raw(was), was.place.bytes),
              0)
        << name;
  }
  const AdapterConfig saved = readAdapterConfig(folder.path());
  EXPECT_EQ(saved.rank, 4);
  EXPECT_EQ(saved.scale(), config.scale());
  EXPECT_THAT(saved.targets, ElementsAre("o_proj", "q_proj", "v_proj"));
}

TEST_F(Adapter, NamesWithDefault) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  writeSafetensors(folder.path(adapterWeightsFile),
                   toyAdapter(values, [](std::string name) {
                     name.insert(name.rfind(".weight"), ".default");
                     return name;
                   }));
  loadAdapter(executor, folder.path());
  EXPECT_THAT(all(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(Adapter, TensorsThatDoNotFit) {
  const float values[8] = {};
  auto tensors = toyAdapter(values, asIs);
  auto tryLoad = [&](const std::string &fragment) {
    writeSafetensors(folder.path(adapterWeightsFile), tensors);
    return errorId([&] { loadAdapter(executor, folder.path()); }, fragment);
  };
  tensors[2].shape = {1, 2};
  EXPECT_EQ(tryLoad("lora_B.weight' has the shape [1, 2]; the model needs "
                    "[2, 1]"),
            5012);
  tensors[2].shape = {2, 1};
  const NamedTensor last = tensors.back();
  tensors.pop_back();
  EXPECT_EQ(tryLoad("no tensor '" + module3 + "lora_B.weight' [2, 1]"), 5012);
  tensors.push_back(last);
  tensors.push_back({module3 + "lora_magnitude_vector.weight", DType::F32,
                     {2}, values});
  EXPECT_EQ(tryLoad("lora_magnitude_vector"), 5013);
}

TEST_F(Adapter, FailureLeavesTheOldAdapter) {
  folder.write(adapterConfigFile, "old configuration");
  std::filesystem::create_directory(folder.path(adapterWeightsFile));
  // The weights cannot take the name of a folder.
  EXPECT_EQ(errorId([&] {
              saveAdapter(executor, AdapterConfig(), folder.path());
            }),
            1304);
  EXPECT_EQ(readFile(folder.path(adapterConfigFile)), "old configuration");
  size_t entries = 0;
  for ([[maybe_unused]] const auto &entry :
       std::filesystem::directory_iterator(folder.path()))
    ++entries;
  EXPECT_EQ(entries, 2u); // no temporary files
}

TEST_F(Adapter, FolderThatIsNotThere) {
  EXPECT_EQ(errorId([&] {
              saveAdapter(executor, AdapterConfig(),
                          folder.path("nowhere"));
            }),
            1301);
}

TEST(PeftAdapter, FilesDoNotDependOnTheRanks) {
  const std::string original = FSDPQ_TEST_INPUTS "/train/peft/rslora_r4";
  std::vector<std::string> files;
  for (const ToyMesh &mesh : toyMeshes) {
    ScratchFolder folder;
    expectSuccess(onRanks(mesh.ranks, [&](Communicator &communicator) {
      FunctionDevice device;
      Executor executor(peftPlan(mesh.ranks, mesh.shards).load(), device,
                        communicator);
      loadAdapter(executor, original);
      saveAdapter(executor, readAdapterConfig(original), folder.path());
    }));
    files.push_back(readFile(folder.path(adapterWeightsFile)) +
                    readFile(folder.path(adapterConfigFile)));
    EXPECT_EQ(files.back(), files.front()) << mesh;
  }
  // 18 tensors of 4 * 64 or 4 * 32 floats.
  EXPECT_GT(files.front().size(), 3 * (5 * 256 + 128) * sizeof(float));
}

TEST(AdapterOnRanks, AFailureOfTheWriterReachesAll) {
  ScratchFolder folder;
  const std::vector<RankEnd> ends = onToyRanks({3, 3}, [&](Executor &executor) {
    saveAdapter(executor, AdapterConfig(), folder.path("nowhere"));
  });
  EXPECT_EQ(ends[0].id, 1301);
  for (const size_t rank : {1, 2}) {
    EXPECT_EQ(ends[rank].id, 5040);
    EXPECT_EQ(ends[rank].code, ends[0].code);
    EXPECT_THAT(ends[rank].message, testing::HasSubstr(ends[0].message));
  }
}
