#include "runtime/train/FullModel.h"
#include "runtime/comm/Solo.h"
#include "runtime/io/Json.h"
#include "runtime/io/Safetensors.h"
#include "runtime/train/Parameters.h"
#include "test/unit/io/TestFiles.h"
#include "test/unit/train/ToyRanks.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using namespace fsdpq::test;

TEST(FullModel, FolderOfHuggingFace) {
  FunctionDevice device;
  PlanBuilder b = toyModel(device);
  b.plan.parameters.resize(1); // no adapters
  const auto solo = makeSolo();
  Executor executor(b.load(), device, *solo);
  const float values[] = {7, 8};
  writeParameter(executor, parameterOf(executor, 0), 1, values);

  ScratchFolder model, out;
  model.write("tokenizer.json", "{\"version\": \"1.0\"}");
  saveFullModel(executor, {{"hidden_size", 4}, {"dtype", "bfloat16"}},
                model.path(), out.path());

  const auto config = readJsonFile(out.path("config.json"));
  EXPECT_EQ(config["hidden_size"], 4);
  EXPECT_EQ(config["dtype"], "float32");
  EXPECT_FALSE(config.contains("torch_dtype"));
  EXPECT_EQ(readFile(out.path("tokenizer.json")), "{\"version\": \"1.0\"}");
  const auto source = openSafetensors(out.path());
  EXPECT_THAT(source->names(),
              testing::ElementsAre("toy.0.scale", "toy.3.scale"));
  float read[2];
  source->readF32(*source->find("toy.3.scale"), 0, 2, read);
  EXPECT_THAT(read, testing::ElementsAre(7, 8));
}

TEST(FullModel, QuantisedParametersAreRefused) {
  FunctionDevice device;
  PlanBuilder b = toyModel(device);
  b.plan.parameters.resize(1);
  plan::ParameterT &scale = *b.plan.parameters[0];
  scale.scheme = "!qt.nf4<block = 64, scale = f32>";
  scale.components[0]->name = "codes";
  scale.components[0]->dtype = "u8";
  scale.components[0]->elements = 1;
  const auto solo = makeSolo();
  Executor executor(b.load(), device, *solo);
  ScratchFolder out;
  EXPECT_EQ(errorId([&] { saveFullModel(executor, {}, "", out.path()); },
                    "!qt.nf4"),
            5003);
  EXPECT_TRUE(std::filesystem::is_empty(out.path()));
}

TEST(FullModel, FilesDoNotDependOnTheRanks) {
  std::vector<std::string> files;
  for (const ToyMesh &mesh : toyMeshes) {
    ScratchFolder out;
    expectSuccess(onToyRanks(
        mesh,
        [&](Executor &executor) {
          const float values[] = {1, 2, 3, 4};
          for (int64_t i : {0, 1})
            writeParameter(executor, parameterOf(executor, 0), i,
                           values + 2 * i);
          saveFullModel(executor, {{"hidden_size", 4}}, "", out.path());
        },
        [](PlanBuilder &b, FunctionDevice &, int64_t) {
          b.plan.parameters.resize(1); // no adapters
        }));
    files.push_back(readFile(out.path("model.safetensors")));
    EXPECT_EQ(files.back(), files.front()) << mesh;
  }
  const std::string wanted = bytesOf(std::array{1.f, 2.f, 3.f, 4.f});
  EXPECT_TRUE(files.front().ends_with(wanted));
}
