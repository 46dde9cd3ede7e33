#include "tools/fsdpq-run/ModelInput.h"

#include "runtime/io/Json.h"
#include "test/unit/io/TestFiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq;
using namespace fsdpq::run;
using namespace fsdpq::rt::test;

namespace {

std::string ggufString(const std::string &text) {
  return bytesOf<uint64_t>(text.size()) + text;
}

std::string ggufTensor(const std::string &name, std::vector<uint64_t> innermost,
                       uint64_t offset) {
  std::string bytes = ggufString(name) +
                      bytesOf<uint32_t>(static_cast<uint32_t>(innermost.size()));
  for (uint64_t dimension : innermost)
    bytes += bytesOf(dimension);
  return bytes + bytesOf<uint32_t>(0) /*F32*/ + bytesOf(offset);
}

/// An embedding [3, 4], factors {1, 2}, a key of the model (not UTF-8) and one
/// of the tokenizer.
std::string smallGguf() {
  constexpr uint32_t stringType = 8, u32Type = 4;
  std::string bytes = "GGUF" + bytesOf<uint32_t>(3) + bytesOf<uint64_t>(2) +
                      bytesOf<uint64_t>(3);
  bytes += ggufString("general.name") + bytesOf(stringType) +
           ggufString("\xff!");
  bytes += ggufString("llama.block_count") + bytesOf(u32Type) +
           bytesOf<uint32_t>(7);
  bytes += ggufString("tokenizer.ggml.model") + bytesOf(stringType) +
           ggufString("gpt2");
  bytes += ggufTensor("token_embd.weight", {4, 3}, 0);
  bytes += ggufTensor("rope_freqs.weight", {2}, 64);
  bytes.resize((bytes.size() + 31) / 32 * 32);
  for (int i = 0; i < 12; ++i)
    bytes += bytesOf(static_cast<float>(i));
  bytes.resize(bytes.size() + 16);
  return bytes + bytesOf(1.f) + bytesOf(2.f) + std::string(24, '\0');
}

Settings settingsFor(const std::string &model, const std::string &dataset = "") {
  Settings settings;
  settings.modelName = model;
  settings.dataset = dataset;
  settings.contextLength = 16;
  return settings;
}

} // namespace

TEST(ModelInput, GgufMetadataForTheCompiler) {
  ScratchFolder folder;
  const ModelInput model =
      openModelInput(settingsFor(folder.write("m.gguf", smallGguf())));
  EXPECT_TRUE(model.files.isGguf);
  EXPECT_EQ(model.vocabulary, 3);
  const auto config = rt::parseJson(model.configText, "text");
  EXPECT_EQ(config["llama.block_count"], 7);
  EXPECT_EQ(config["general.name"], "\xef\xbf\xbd!");
  EXPECT_FALSE(config.contains("tokenizer.ggml.model"));
  EXPECT_EQ(config["tensors"]["token_embd.weight"],
            nlohmann::json::array({3, 4}));
  EXPECT_EQ(config["rope_freqs.weight"], nlohmann::json::array({1.0, 2.0}));
}

TEST(ModelInput, PlanNeedsAConfigurationOnly) {
  ScratchFolder folder;
  const std::string config =
      folder.write("m/config.json", R"({"vocab_size": 10, "x": 0.1})");
  for (const std::string &name : {config, folder.path("m")}) {
    const ModelInput model = openModelConfig(settingsFor(name));
    EXPECT_EQ(model.configText, R"({"vocab_size":10,"x":0.1})");
    EXPECT_EQ(model.vocabulary, 10);
    EXPECT_EQ(model.files.tensors, nullptr);
  }
  EXPECT_TRUE(openModelConfig(settingsFor(folder.write("m.gguf", smallGguf())))
                  .files.isGguf);
  EXPECT_EQ(errorId([&] {
              openModelConfig(settingsFor(folder.write("bad.json", "[1]")));
            }),
            1205);
  EXPECT_EQ(errorId([&] { openModelConfig(settingsFor("no/such-model")); },
                    "hf download no/such-model"),
            1212);
}

TEST(ModelInput, RecordsWithoutATokenizer) {
  ScratchFolder folder;
  ModelInput model;
  model.files.path = folder.path();
  model.vocabulary = 10;
  const std::string rows = folder.write(
      "rows.jsonl", "{\"input_ids\": [1, 2, 3]}\n{\"input_ids\": [4, 5], "
                    "\"labels\": [-100, -100]}\n{\"input_ids\": [9]}\n");
  Settings settings = settingsFor("m", rows);
  EXPECT_EQ(loadRecords(settings, model).rows.size(), 3u);
  settings.datasetSamples = 2;
  const rt::Dataset some = loadRecords(settings, model);
  ASSERT_EQ(some.rows.size(), 2u);
  EXPECT_THAT(some.rows[1].ids, testing::ElementsAre(4, 5));

  // What needs a tokenizer says what is wrong with the one there.
  settings.dataset = folder.write(
      "alpaca.jsonl", R"({"instruction": "a", "output": "b"})");
  EXPECT_EQ(errorId([&] { loadRecords(settings, model); }, "tokenizer.json"),
            6030);
}

TEST(ModelInput, TokensBeyondTheEmbedding) {
  ScratchFolder folder;
  ModelInput model;
  model.files.path = FSDPQ_TEST_INPUTS "/data/byte_level";
  model.vocabulary = 5; // the tokenizer has more
  const Settings settings = settingsFor(
      "m", folder.write("alpaca.jsonl",
                        R"({"instruction": "abc", "output": "xyz"})"));
  EXPECT_EQ(errorId([&] { loadRecords(settings, model); }, "the model has 5"),
            6024);
}

TEST(ModelInput, StopIds) {
  ScratchFolder folder;
  rt::ModelFiles files;
  files.path = folder.path();
  files.config = {{"eos_token_id", {7, 8}}};
  folder.write("generation_config.json", R"({"eos_token_id": 9})");
  const auto tokenizer = rt::loadTokenizerJson(
      FSDPQ_TEST_INPUTS "/data/byte_level/tokenizer.json");
  std::vector<int32_t> expected = {7, 8, 9};
  if (auto eos = tokenizer->eosId())
    expected.insert(expected.begin(), *eos);
  EXPECT_EQ(stopIds(files, *tokenizer), expected);
  files.config = {{"eos_token_id", nullptr}};
  files.isGguf = true;
  expected.resize(expected.size() - 3);
  EXPECT_EQ(stopIds(files, *tokenizer), expected);
}
