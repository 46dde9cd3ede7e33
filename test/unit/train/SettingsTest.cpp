#include "test/unit/io/TestFiles.h"
#include "tools/fsdpq-run/options/CompileRequest.h"
#include "tools/fsdpq-run/options/Settings.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

using namespace fsdpq;
using namespace fsdpq::run;
using fsdpq::rt::test::errorId;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

static Settings settingsOf(std::vector<std::string> words) {
  return makeSettings(parseCommandLine(words));
}

static Settings trainWith(std::vector<std::string> words) {
  words.insert(words.begin(), {"train", "--dataset", "rows.jsonl"});
  return settingsOf(words);
}

TEST(Settings, DefaultsAreTheReferences) {
  const Settings s = trainWith({});
  EXPECT_EQ(s.trainType, TrainType::Qlora);
  EXPECT_EQ(s.quantScheme, "!qt.nf4<block = 64, scale = dq<256>>");
  EXPECT_EQ(s.modelName, "meta-llama/Llama-2-7b-hf");
  EXPECT_EQ(s.lora.rank, 64);
  EXPECT_EQ(s.lora.scale(), 0.25);
  EXPECT_THAT(s.lora.targets, ElementsAre("all"));
  EXPECT_EQ(s.lr, 1e-5);
  EXPECT_EQ(s.contextLength, 512);
  EXPECT_EQ(s.tokenCapacity(), 512);
  EXPECT_TRUE(std::isinf(s.maxGradNorm));
  EXPECT_EQ(s.optimizer, "adamw");
  EXPECT_THAT(s.optimizerOptions,
              UnorderedElementsAre(Pair("beta1", 0.9), Pair("beta2", 0.95),
                                   Pair("epsilon", 1e-5),
                                   Pair("weight_decay", 0.1)));
  EXPECT_FALSE(s.maxSteps);
  EXPECT_FALSE(s.datasetSamples);
  EXPECT_TRUE(s.shuffle);
  EXPECT_TRUE(s.showBar);
  EXPECT_FALSE(s.showEveryStep);
  EXPECT_EQ(s.seed, 42u);
  EXPECT_EQ(s.outputDir, "output");
  EXPECT_EQ(s.precision, "bf16");
  EXPECT_EQ(s.lora.dropout, 0.1);
}

TEST(Settings, ClippingRules) {
  EXPECT_EQ(trainWith({"--grad_norm", "0.5"}).maxGradNorm, 0.5);
  EXPECT_EQ(trainWith({"--apply_gradient_clipping"}).maxGradNorm, 0.3);
  const Settings off = trainWith(
      {"--grad_norm", "0.5", "--apply_gradient_clipping", "false"});
  EXPECT_TRUE(std::isinf(off.maxGradNorm));
  EXPECT_THAT(off.notes, Contains(HasSubstr("--grad_norm has no effect")));
}

TEST(Settings, Optimizers) {
  EXPECT_THAT(trainWith({"--optimizer", "adam"}).optimizerOptions,
              UnorderedElementsAre(Pair("beta1", 0.9), Pair("beta2", 0.999),
                                   Pair("epsilon", 1e-8),
                                   Pair("weight_decay", 0)));
  const Settings sgd =
      trainWith({"--optimizer", "sgd", "--wd", "0.2", "--adam_beta1", "0.8"});
  EXPECT_TRUE(sgd.optimizerOptions.empty());
  EXPECT_THAT(sgd.notes, Contains(HasSubstr("--wd has no effect")));
  EXPECT_THAT(sgd.notes, Contains(HasSubstr("--adam_beta1 has no effect")));
  EXPECT_THAT(trainWith({"--optimizer", "adadelta"}).optimizerOptions,
              UnorderedElementsAre(Pair("rho", 0.9), Pair("epsilon", 1e-6)));
  EXPECT_THAT(
      trainWith({"--adam_beta2", "0.99", "--wd", "0"}).optimizerOptions,
      UnorderedElementsAre(Pair("beta1", 0.9), Pair("beta2", 0.99),
                           Pair("epsilon", 1e-5), Pair("weight_decay", 0)));
}

TEST(Settings, Quantisation) {
  EXPECT_EQ(trainWith({"--quant_type", "fp4", "--blocksize", "128",
                       "--no-double-quant"})
                .quantScheme,
            "!qt.fp4<block = 128, scale = f32>");
  const Settings lora =
      trainWith({"--train_type", "lora", "--blocksize", "32"});
  EXPECT_EQ(lora.quantScheme, "");
  EXPECT_THAT(lora.notes, Contains(HasSubstr("--blocksize has no effect")));
  EXPECT_EQ(errorId([] { trainWith({"--blocksize", "96"}); }, "power of two"),
            6005);
}

TEST(Settings, Refusals) {
  EXPECT_EQ(errorId([] { settingsOf({}); }, "no --dataset"), 6009);
  EXPECT_EQ(errorId([] { settingsOf({"--dataset", "alpaca_sample"}); },
                    "./alpaca_sample"),
            6007);
  EXPECT_EQ(settingsOf({"--dataset", "./alpaca"}).dataset, "./alpaca");
  EXPECT_EQ(errorId([] { trainWith({"--max_steps", "0"}); }), 6005);
  EXPECT_EQ(errorId(
                [] {
                  trainWith({"--world_size", "0"});
                },
                "-1 means"),
            6005);
  EXPECT_EQ(errorId([] { trainWith({"--lora_dropout", "1"}); },
                    "would drop everything"),
            6005);
  EXPECT_EQ(errorId([] {
              trainWith({"--train_type", "full", "--adapter", "a"});
            }),
            6005);
  EXPECT_EQ(errorId([] {
              trainWith({"--batch_size", "65536", "--context_length",
                         "1000000"});
            }, "2^31"),
            6005);
  EXPECT_EQ(errorId([] { settingsOf({"generate"}); }, "no --prompt"), 6009);
}

TEST(Settings, Ranks) {
  const RankOptions omitted = trainWith({}).rankOptions;
  EXPECT_FALSE(omitted.ranksPerHost || omitted.ranks || omitted.masterAddress ||
               omitted.masterPort);
  EXPECT_EQ(omitted.tokenFile, "");
  EXPECT_EQ(trainWith({}).collectiveTimeout, std::chrono::seconds(600));
  EXPECT_FALSE(trainWith({"--world_size", "-1"}).rankOptions.ranks);

  const Settings s =
      trainWith({"--nproc-per-node", "2", "--world-size", "4", "--master_addr",
                 "first", "--master_port", "0", "--job_token_file", "token",
                 "--collective_timeout", "30", "--deterministic",
                 "--loss_average", "token", "--trace", "trace.json"});
  EXPECT_EQ(s.rankOptions.ranksPerHost, 2);
  EXPECT_EQ(s.rankOptions.ranks, 4);
  EXPECT_EQ(s.rankOptions.masterAddress, "first");
  EXPECT_EQ(s.rankOptions.masterPort, 0);
  EXPECT_EQ(s.rankOptions.tokenFile, "token");
  EXPECT_EQ(s.collectiveTimeout, std::chrono::seconds(30));
  EXPECT_TRUE(s.deterministic);
  EXPECT_TRUE(s.averagesTokens);
  EXPECT_EQ(s.trace, "trace.json");
  // Other commands run on several processes, too.
  EXPECT_EQ(settingsOf({"eval", "--dataset", "d", "--nproc_per_node", "3"})
                .rankOptions.ranksPerHost,
            3);
}

TEST(Settings, Sharding) {
  struct Case {
    std::vector<std::string> words;
    int64_t ranks, ranksPerHost, shards;
    bool keepGathered;
  };
  const Case cases[] = {
      {{}, 8, 4, 8, false},
      {{"--sharding_strategy", "full_shard"}, 1, 1, 1, false},
      {{"--sharding_strategy", "shard_grad_op"}, 8, 4, 8, true},
      {{"--sharding_strategy", "ddp"}, 8, 4, 1, false},
      {{"--sharding_strategy", "hybrid_full_shard"}, 8, 4, 4, false},
      {{"--sharding_strategy", "hybrid_shard_grad_op"}, 8, 4, 4, true},
      {{"--sharding_strategy", "hybrid_full_shard", "--shard_group", "2"},
       8,
       4,
       2,
       false},
  };
  for (const Case &testCase : cases) {
    Settings s = trainWith(testCase.words);
    decideMesh(s, testCase.ranks, testCase.ranksPerHost);
    EXPECT_EQ(s.ranks, testCase.ranks);
    EXPECT_EQ(s.shards, testCase.shards)
        << testing::PrintToString(testCase.words);
    EXPECT_EQ(s.sharding.keepGathered, testCase.keepGathered);
  }

  EXPECT_EQ(errorId(
                [] {
                  Settings s =
                      trainWith({"--sharding_strategy", "hybrid_full_shard",
                                 "--shard_group", "3"});
                  decideMesh(s, 8, 4);
                },
                "8, is no multiple of 3 (--shard_group)"),
            6005);
  EXPECT_EQ(errorId(
                [] {
                  Settings s =
                      trainWith({"--sharding_strategy", "hybrid_full_shard"});
                  decideMesh(s, 5, 2);
                },
                "those of one machine"),
            6005);
  EXPECT_THAT(trainWith({"--shard_group", "2"}).notes,
              Contains(HasSubstr("--shard_group has no effect")));
  EXPECT_THAT(
      trainWith({"--sharding_strategy", "ddp", "--fsdp_units", "layer"}).notes,
      Contains(HasSubstr("--fsdp_units has no effect")));
  // A plan has its mesh.
  const Settings planned =
      trainWith({"--plan", "p", "--sharding_strategy", "ddp"});
  EXPECT_THAT(planned.notes,
              Contains(HasSubstr("--sharding_strategy has no effect")));
}

TEST(Settings, MemoryBudget) {
  EXPECT_EQ(trainWith({}).memoryBudget, 0);
  EXPECT_EQ(trainWith({"--memory_budget", "auto"}).memoryShare, 0);
  EXPECT_EQ(trainWith({"--memory-budget", "22GiB"}).memoryBudget, int64_t(22)
                                                                      << 30);
  const Settings share = trainWith({"--memory-budget=90%"});
  EXPECT_EQ(share.memoryShare, 0.9);
  EXPECT_EQ(share.memoryBudget, 0);
  for (const char *wrong : {"0", "much", "120%", "-1GiB", "22 gigabytes"})
    EXPECT_EQ(
        errorId([&] { trainWith({std::string("--memory_budget=") + wrong}); },
                "22GiB"),
        6005)
        << wrong;
}

TEST(Settings, HostMemoryOnly) {
  EXPECT_THAT(trainWith({"--use_cpu_offload", "true"}).notes,
              Contains(HasSubstr("--use_cpu_offload has no effect")));
}

TEST(Settings, AdapterHolds) {
  rt::AdapterConfig adapter;
  adapter.rank = 8;
  adapter.alpha = 32;
  adapter.targets = {"q_proj", "o_proj"};
  adapter.useRslora = true;
  adapter.dropout = 0.05;
  auto use = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"train", "--dataset", "d", "--adapter", "a"});
    const CommandLine line = parseCommandLine(words);
    Settings settings = makeSettings(line);
    useAdapter(settings, adapter, line.options);
    return settings;
  };
  const Settings s = use({"--lora_rank", "8"});
  EXPECT_EQ(s.lora.rank, 8);
  EXPECT_TRUE(s.lora.useRslora);
  EXPECT_EQ(s.lora.dropout, 0.05);
  EXPECT_EQ(use({"--lora_dropout", "0.25"}).lora.dropout, 0.25);
  EXPECT_EQ(errorId([&] { use({"--lora_rank", "64"}); }, "which has 8"), 6010);
  EXPECT_EQ(errorId([&] { use({"--lora_alpha", "16"}); }, "which has 32"),
            6010);
  EXPECT_EQ(errorId([&] { use({"--lora_target_modules", "all"}); },
                    "q_proj,o_proj"),
            6010);
}

TEST(CompileRequest, Training) {
  const Settings s = trainWith(
      {"--batch_size", "3", "--context_length", "100", "--lora_rank", "4",
       "--lora_alpha", "8", "--lora_target_modules", "q_proj,o_proj",
       "--use_gradient_checkpointing", "--threads", "2", "--compile-to",
       "shard", "--dump-ir", "ir"});
  const CompileOptions request = makeCompileOptions(s);
  EXPECT_EQ(request.tokens, 384);
  EXPECT_THAT(request.programs, ElementsAre("micro_step"));
  EXPECT_EQ(request.loraRank, 4);
  EXPECT_EQ(request.loraScale, 2);
  EXPECT_EQ(request.loraDropout, 0.1);
  EXPECT_THAT(request.loraTargets, ElementsAre("q_proj", "o_proj"));
  EXPECT_TRUE(request.checkpointing);
  EXPECT_FALSE(request.trainAll);
  EXPECT_FALSE(request.planOnly);
  EXPECT_EQ(request.optimizer, "adamw");
  EXPECT_EQ(request.optimizerOptions.at("beta2"), 0.95);
  EXPECT_EQ(request.compileTo, "shard");
  EXPECT_EQ(request.dumpIr, "ir");
  EXPECT_EQ(request.threads, 2u);
}

TEST(CompileRequest, Mesh) {
  auto requestOf = [](std::vector<std::string> words) {
    Settings s = trainWith(words);
    decideMesh(s, 4, 2);
    return makeCompileOptions(s);
  };
  const CompileOptions full = requestOf({});
  EXPECT_EQ(full.ranks, 4);
  EXPECT_EQ(full.shards, 4);
  EXPECT_FALSE(full.keepGathered);
  EXPECT_FALSE(full.splitUnits);
  EXPECT_FALSE(full.deterministic);
  EXPECT_EQ(full.memoryBudget, 0);
  const CompileOptions other =
      requestOf({"--sharding_strategy", "hybrid_shard_grad_op", "--fsdp_units",
                 "attn+mlp", "--deterministic", "--memory_budget", "1GiB"});
  EXPECT_EQ(other.ranks, 4);
  EXPECT_EQ(other.shards, 2);
  EXPECT_TRUE(other.keepGathered);
  EXPECT_TRUE(other.splitUnits);
  EXPECT_TRUE(other.deterministic);
  EXPECT_EQ(other.memoryBudget, 1 << 30);

  EXPECT_TRUE(full.reduceEachMicroStep);
  const char accumulate[] = "--gradient_accumulation_steps";
  EXPECT_FALSE(requestOf({accumulate, "2"}).reduceEachMicroStep);
  EXPECT_TRUE(
      requestOf({accumulate, "2", "--deterministic"}).reduceEachMicroStep);
  EXPECT_TRUE(
      requestOf({accumulate, "2", "--train_type", "full"}).reduceEachMicroStep);
}

TEST(CompileRequest, OtherCommands) {
  const CompileOptions full =
      makeCompileOptions(trainWith({"--train_type", "full"}));
  EXPECT_TRUE(full.trainAll);
  EXPECT_EQ(full.loraRank, 0);
  EXPECT_EQ(full.quantScheme, "");
  const CompileOptions plan = makeCompileOptions(settingsOf({"plan"}));
  EXPECT_TRUE(plan.planOnly);
  EXPECT_THAT(plan.programs, ElementsAre("micro_step"));
  const CompileOptions eval =
      makeCompileOptions(settingsOf({"eval", "--dataset", "d"}));
  EXPECT_THAT(eval.programs, ElementsAre("eval_step"));
  EXPECT_EQ(eval.loraRank, 0);
  EXPECT_EQ(eval.quantScheme, "!qt.nf4<block = 64, scale = dq<256>>");
  const CompileOptions generate = makeCompileOptions(
      settingsOf({"generate", "--prompt", "x", "--context_length", "100"}));
  EXPECT_THAT(generate.programs, ElementsAre("logits"));
  EXPECT_EQ(generate.tokens, 128);
}

TEST(EffectiveOptions, ComparedAreThoseThatResultsDependOn) {
  auto compared = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"train", "--dataset", "d"});
    const CommandLine line = parseCommandLine(words);
    return comparedOptions(makeSettings(line), line.options);
  };
  const std::string text = compared({});
  for (const char *name :
       {"train_type: ", "lr: ", "seed: ", "lora_rank: ", "quant_type: ",
        "loss_average: ", "context_length: ", "shuffle: "})
    EXPECT_THAT(text, HasSubstr(name));
  EXPECT_NE(text, compared({"--lr", "1"}));
  EXPECT_NE(text, compared({"--grad_norm", "1"}));
  EXPECT_EQ(text, compared({"--output_dir", "o", "--threads", "2", "--verbose",
                            "--model_name", "m", "--trace", "t"}));
  EXPECT_THAT(text, Not(HasSubstr("dataset")));
}

TEST(EffectiveOptions, HoldWhatHeld) {
  const CommandLine line = parseCommandLine(
      {"--dataset", "no", "--lr", "2e-4", "--optimizer", "adam",
       "--grad_norm", "1", "--lora_target_modules", "q_proj,v_proj",
       "--low_memory"});
  Settings settings = makeSettings(line);
  decideMesh(settings, 2, 2);
  const std::string text = effectiveOptionsYaml(settings, line.options);
  const YAML::Node yaml = YAML::Load(text);
  EXPECT_EQ(yaml["dataset"].as<std::string>(), "no");
  EXPECT_THAT(text, HasSubstr("dataset: \"no\""));
  EXPECT_EQ(yaml["lr"].as<double>(), 2e-4);
  EXPECT_EQ(yaml["adam_beta2"].as<double>(), 0.999);
  EXPECT_EQ(yaml["adam_epsilon"].as<double>(), 1e-8);
  EXPECT_THAT(text, HasSubstr("adam_epsilon: 1.0e-08"));
  EXPECT_TRUE(yaml["apply_gradient_clipping"].as<bool>());
  EXPECT_EQ(yaml["grad_norm"].as<double>(), 1);
  EXPECT_EQ(yaml["lora_target_modules"][1].as<std::string>(), "v_proj");
  EXPECT_EQ(yaml["batch_size"].as<int>(), 1);
  EXPECT_EQ(yaml["world_size"].as<int>(), 2);
  EXPECT_EQ(yaml["sharding_strategy"].as<std::string>(), "full_shard");
  EXPECT_FALSE(yaml["nproc_per_node"]); // not given
  EXPECT_FALSE(yaml["use_gradient_checkpointing"].as<bool>());
  EXPECT_FALSE(yaml["low_memory"]); // moot
  EXPECT_FALSE(yaml["resume"]);     // not yet
  EXPECT_FALSE(yaml["prompt"]);     // of another command
}
