#include "runtime/train/AdapterConfig.h"

#include "runtime/io/Json.h"
#include "test/unit/io/TestFiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using testing::ElementsAre;

static const std::string peft = FSDPQ_TEST_INPUTS "/train/peft/";

TEST(AdapterConfig, PeftLora) {
  const AdapterConfig config = readAdapterConfig(peft + "lora_r8");
  EXPECT_EQ(config.rank, 8);
  EXPECT_EQ(config.alpha, 16);
  EXPECT_EQ(config.scale(), 2);
  EXPECT_EQ(config.dropout, 0);
  EXPECT_FALSE(config.useRslora);
  EXPECT_EQ(config.baseModel, "llama_gqa");
  EXPECT_THAT(config.targets, ElementsAre("down_proj", "gate_proj", "k_proj",
                                          "q_proj", "up_proj", "v_proj"));
}

TEST(AdapterConfig, PeftRankStabilised) {
  const AdapterConfig config = readAdapterConfig(peft + "rslora_r4");
  EXPECT_TRUE(config.useRslora);
  EXPECT_EQ(config.scale(), 4); // 8 / sqrt(4)
}

TEST(AdapterConfig, PeftDoraIsRefused) {
  EXPECT_EQ(errorId([] { readAdapterConfig(peft + "dora_r4"); },
                    "\"use_dora\": true"),
            5011);
}

TEST(AdapterConfig, TextReadsBack) {
  ScratchFolder folder;
  AdapterConfig config;
  config.rank = 5;
  config.alpha = 2.5;
  config.targets = {"q_proj", "o_proj"};
  config.useRslora = true;
  config.baseModel = "org/\"name\"";
  folder.write(adapterConfigFile, adapterConfigText(config));
  const AdapterConfig read = readAdapterConfig(folder.path());
  EXPECT_EQ(read.rank, 5);
  EXPECT_EQ(read.alpha, 2.5);
  EXPECT_EQ(read.targets, config.targets);
  EXPECT_TRUE(read.useRslora);
  EXPECT_EQ(read.baseModel, config.baseModel);
}

TEST(AdapterConfig, WholeAlphaHasNoFraction) {
  AdapterConfig config;
  config.alpha = 16;
  const auto json = parseJson(adapterConfigText(config), "text");
  EXPECT_TRUE(json["lora_alpha"].is_number_integer());
  EXPECT_TRUE(json["base_model_name_or_path"].is_null());
  EXPECT_EQ(json["task_type"], "CAUSAL_LM");
}

TEST(AdapterConfig, HostileFields) {
  struct Case {
    const char *patch;
    int id;
    const char *fragment;
  };
  const Case cases[] = {
      {R"({"peft_type": "IA3"})", 5011, "IA3"},
      {R"({"peft_type": null})", 1205, "peft_type"},
      {R"({"r": 0})", 5010, "\"r\" is 0"},
      {R"({"r": 5000})", 5010, "1 to 4096"},
      {R"({"r": 8.5})", 1205, "r"},
      {R"({"lora_alpha": "16"})", 1205, "lora_alpha"},
      {R"({"lora_dropout": 1.5})", 5010, "lora_dropout"},
      {R"({"target_modules": []})", 5010, "target_modules"},
      {R"({"target_modules": [1]})", 5010, "target_modules"},
      {R"({"target_modules": ".*q_proj"})", 5011, "pattern"},
      {R"({"bias": "all"})", 5011, "bias"},
      {R"({"rank_pattern": {"q_proj": 4}})", 5011, "rank_pattern"},
      {R"({"modules_to_save": ["lm_head"]})", 5011, "modules_to_save"},
      {R"({"layers_to_transform": 3})", 5011, "layers_to_transform"},
      {R"({"fan_in_fan_out": true})", 5011, "fan_in_fan_out"},
  };
  for (const Case &testCase : cases) {
    auto json = readJsonFile(peft + "lora_r8/adapter_config.json");
    json.update(nlohmann::json::parse(testCase.patch));
    ScratchFolder folder;
    folder.write(adapterConfigFile, json.dump());
    EXPECT_EQ(errorId([&] { readAdapterConfig(folder.path()); },
                      testCase.fragment),
              testCase.id)
        << testCase.patch;
  }
  ScratchFolder folder;
  EXPECT_EQ(errorId([&] { readAdapterConfig(folder.path()); },
                    adapterConfigFile),
            5010);
  folder.write(adapterConfigFile, "[]");
  EXPECT_EQ(errorId([&] { readAdapterConfig(folder.path()); }), 5010);
}

TEST(AdapterConfig, AllLinearIsAWord) {
  auto json = readJsonFile(peft + "lora_r8/adapter_config.json");
  json["target_modules"] = "all-linear";
  ScratchFolder folder;
  folder.write(adapterConfigFile, json.dump());
  EXPECT_THAT(readAdapterConfig(folder.path()).targets,
              ElementsAre("all-linear"));
}
