#include "test/unit/io/TestFiles.h"
#include "tools/fsdpq-run/options/CommandLine.h"
#include "tools/fsdpq-run/options/Values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

using namespace fsdpq::run;
using fsdpq::rt::test::errorId;
using testing::ElementsAre;
using testing::HasSubstr;

static CommandLine parse(std::vector<std::string> words) {
  return parseCommandLine(words);
}

//===--- The table ----------------------------------------------------------//

TEST(OptionTable, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const OptionSpec &option : optionTable()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    if (!option.alias.empty()) {
      EXPECT_TRUE(names.insert(option.alias).second) << option.alias;
    }
    EXPECT_EQ(option.name.find('-'), std::string_view::npos) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.group.empty()) << option.name;
    EXPECT_FALSE(option.help.ends_with('.')) << option.name;
  }
}

TEST(OptionTable, GroupsAreTogether) {
  std::set<std::string_view> closed;
  std::string_view current;
  for (const OptionSpec &option : optionTable())
    if (option.group != current) {
      current = option.group;
      EXPECT_TRUE(closed.insert(current).second) << current;
    }
}

TEST(OptionTable, DefaultsAreAllowedValues) {
  for (const OptionSpec &option : optionTable())
    if (!option.byDefault.empty()) {
      EXPECT_EQ(checkValue(option, std::string(option.byDefault)),
                option.byDefault);
    }
}

// The 54 options of the reference's train.py.
TEST(OptionTable, ReferenceIsCovered) {
  constexpr std::string_view reference =
      "world_size|train_type|llama_pro_path|batch_size|context_length|"
      "gradient_accumulation_steps|num_epochs|dataset|dataset_samples|"
      "sharding_strategy|use_gradient_checkpointing|reentrant_checkpointing|"
      "use_cpu_offload|use_activation_cpu_offload|low_memory|no_sync|precision|"
      "model_name|save_model|output_dir|lora_rank|lora_alpha|lora_dropout|"
      "lora_target_modules|verbose|lr|apply_gradient_clipping|grad_norm|wd|"
      "profile_memory|optimizer|lr_scheduler|loading_workers|log_to|"
      "master_addr|master_port|seed|project_name|name|group|entity|n_bits|"
      "profile|profiling_output|with_stack|with_shapes|export_trace|"
      "export_memory_timeline|wait_steps|warmup_steps|active_steps|repeat|"
      "profiling_frequency|max_steps";
  int count = 0;
  forEachChoice(reference, [&](std::string_view name) {
    ++count;
    EXPECT_NE(findOption(name), nullptr) << name;
  });
  EXPECT_EQ(count, 54);
}

//===--- Words --------------------------------------------------------------//

TEST(CommandLine, CommandsAndDefaults) {
  EXPECT_EQ(parse({}).command, Train);
  EXPECT_EQ(parse({"plan"}).command, Plan);
  const CommandLine line = parse({"train", "--lr", "3e-4"});
  EXPECT_EQ(line.options.real("lr"), 3e-4);
  EXPECT_EQ(line.options.integer("batch_size"), 1);
  EXPECT_FALSE(line.options.isGiven("batch_size"));
  EXPECT_EQ(line.options.find("adapter"), std::nullopt);
  EXPECT_TRUE(line.notes.empty());
}

TEST(CommandLine, Spellings) {
  const Options options =
      parse({"--batch-size=4", "--context_length", "128", "--model-name=-x",
             "--max_steps", "-1", "--max-grad-norm", "1",
             "--lora_target_modules", "q_proj, v_proj"})
          .options;
  EXPECT_EQ(options.integer("batch_size"), 4);
  EXPECT_EQ(options.integer("context_length"), 128);
  EXPECT_EQ(options.text("model_name"), "-x");
  EXPECT_EQ(options.integer("max_steps"), -1);
  EXPECT_EQ(options.real("grad_norm"), 1);
  EXPECT_THAT(options.list("lora_target_modules"),
              ElementsAre("q_proj", "v_proj"));
}

TEST(CommandLine, Booleans) {
  auto shuffle = [](std::vector<std::string> words) {
    return parse(words).options.boolean("shuffle");
  };
  EXPECT_TRUE(shuffle({"--shuffle"}));
  for (const char *yes : {"true", "True", "TRUE", "yes", "1"}) {
    EXPECT_TRUE(shuffle({"--shuffle", yes})) << yes;
    EXPECT_TRUE(shuffle({std::string("--shuffle=") + yes})) << yes;
  }
  for (const char *no : {"false", "False", "no", "0"})
    EXPECT_FALSE(shuffle({"--shuffle", no})) << no;
  EXPECT_FALSE(shuffle({"--no-shuffle"}));
  EXPECT_FALSE(shuffle({"--no_shuffle", "--lr", "1"}));
  // An option of that name, not the opposite of "sync".
  EXPECT_TRUE(parse({"--no-sync"}).options.boolean("no_sync"));
  EXPECT_FALSE(parse({"--no-no-sync"}).options.boolean("no_sync"));
  EXPECT_EQ(errorId([&] { shuffle({"--shuffle=maybe"}); }, "true or false"),
            6005);
  EXPECT_EQ(errorId([&] { shuffle({"--shuffle", "maybe"}); }, "maybe"), 6003);
  EXPECT_EQ(errorId([&] { shuffle({"--no-shuffle=true"}); }), 6005);
  EXPECT_EQ(errorId([&] { shuffle({"--no-lr"}); }, "not a boolean"), 6005);
}

TEST(CommandLine, WordsThatAreErrors) {
  struct Case {
    std::vector<std::string> words;
    int id;
    const char *fragment;
  };
  const Case cases[] = {
      {{"--batchsize", "4"}, 6001, "did you mean --batch_size?"},
      {{"--batch"}, 6001, "did you mean --batch_size?"},
      {{"--grad-norn=1"}, 6001, "did you mean --grad_norm?"},
      {{"--xyzzy"}, 6001, "--help"},
      {{"--"}, 6001, "unknown option --"},
      {{"trian"}, 6002, "did you mean train?"},
      {{"merge"}, 6007, "merge"},
      {{"train", "./alpaca"}, 6003, "\"./alpaca\" belongs to no option"},
      {{"-lr", "1"}, 6003, "two hyphens"},
      {{"--lr"}, 6004, "--lr needs a value"},
      {{"--lr", "--wd", "1"}, 6004, "--lr needs a value"},
      {{"--lr", "1", "--lr=1"}, 6006, "--lr is given twice"},
      {{"--grad_norm", "1", "--max_grad_norm", "1"}, 6006, "--grad_norm"},
      {{"--prompt", "x"}, 6008, "--prompt is not an option of train"},
      {{"generate", "--lr", "1"}, 6008, "--lr is not an option of generate"},
  };
  for (const Case &testCase : cases)
    EXPECT_EQ(errorId([&] { parse(testCase.words); }, testCase.fragment),
              testCase.id)
        << testCase.words[0];
}

TEST(CommandLine, ValuesThatAreErrors) {
  struct Case {
    const char *name, *value;
    int id;
    const char *fragment;
  };
  const Case cases[] = {
      {"lr", "nan", 6005, "\"nan\""},
      {"lr", "inf", 6005, "\"inf\""},
      {"lr", "1e999", 6005, "1e999"},
      {"lr", "0x10", 6005, "0x10"},
      {"lr", "1.5x", 6005, "1.5x"},
      {"lr", "-1", 6005, "a number from 0 to 1e+06"},
      {"batch_size", "1e3", 6005, "written as 1000"},
      {"batch_size", "2.0", 6005, "written as 2"},
      {"batch_size", "1.5", 6005, "a whole number from 1 to 65536"},
      {"batch_size", "0", 6005, "a whole number from 1 to 65536"},
      {"batch_size", "99999999999999999999", 6005, "whole number"},
      {"seed", "-1", 6005, "--seed"},
      {"n_bits", "8", 6005, "expected 4"},
      {"optimizer", "adamww", 6005, "did you mean adamw?"},
      {"train_type", "hqq_dora", 6007, "full|lora|qlora"},
      {"precision", "bf16_autocast", 6007, "possible now: bf16|fp32"},
      {"log_to", "tqdm,wandb", 6007, "wandb"},
      {"log_to", "tqdm,", 6005, "commas"},
      {"device", "gpu", 6005, "auto|cpu|cuda"},
      {"model_name", "", 6005, "expected a value"},
      {"resume", "auto", 6007, "--resume is not there yet"},
      {"profile", "true", 6007, "--profile is not there yet"},
      {"host_memory_budget", "22GiB", 6007, "--host_memory_budget"},
      {"nproc_per_node", "0", 6005, "from 1 to 4096"},
      {"world_size", "-2", 6005, "from -1 to 65536"},
      {"shard_group", "0", 6005, "--shard_group"},
      {"master_port", "65536", 6005, "from 0 to 65535"},
      {"collective_timeout", "0", 6005, "from 1"},
      {"fsdp_units", "attn", 6005, "layer|attn+mlp"},
      {"loss_average", "tokens", 6005, "did you mean token?"},
  };
  for (const Case &testCase : cases)
    EXPECT_EQ(errorId(
                  [&] {
                    parse({std::string("--") + testCase.name + "=" +
                           testCase.value});
                  },
                  testCase.fragment),
              testCase.id)
        << testCase.name << " " << testCase.value;
}

TEST(CommandLine, InertAndMootValuesAreAccepted) {
  const CommandLine line = parse(
      {"--profile", "false", "--profile_memory=False", "--host-memory-budget",
       "auto", "--low_memory", "true", "--no_sync", "--loading_workers", "-1"});
  EXPECT_THAT(line.notes,
              ElementsAre(HasSubstr("--low_memory has no effect: "),
                          HasSubstr("--no_sync has no effect: "),
                          HasSubstr("--loading_workers has no effect: ")));
}

TEST(CommandLine, Help) {
  EXPECT_EQ(parse({"--help"}).help, CommandLine::Help::Text);
  EXPECT_EQ(parse({"eval", "-h"}).help, CommandLine::Help::Text);
  EXPECT_EQ(parse({"--help-options-markdown"}).help,
            CommandLine::Help::Markdown);
  const std::string generate = helpText(Generate);
  EXPECT_THAT(generate, HasSubstr("--prompt TEXT"));
  EXPECT_THAT(generate, testing::Not(HasSubstr("--lr ")));
  // No line is wider than a terminal.
  for (const CommandSpec &spec : commandTable()) {
    std::istringstream lines(helpText(spec.command));
    for (std::string text; std::getline(lines, text);)
      EXPECT_LE(text.size(), 90u) << text;
  }
  const std::string table = optionsMarkdown();
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'),
            static_cast<std::ptrdiff_t>(optionTable().size()) + 2);
  EXPECT_THAT(table, HasSubstr("| `--grad_norm`, `--max_grad_norm` | `0.3` | "
                               "honoured |"));
}

TEST(Values, Nearest) {
  EXPECT_EQ(nearest("optimiser", {"optimizer", "output_dir"}), "optimizer");
  EXPECT_EQ(nearest("zzzzzz", {"optimizer", "output_dir"}), "");
  EXPECT_EQ(nearest("", {"a"}), "");
  EXPECT_EQ(nearest(std::string(100000, 'a'), {"a"}), "");
}

TEST(Values, Bytes) {
  EXPECT_EQ(readBytes("4096"), 4096);
  EXPECT_EQ(readBytes("22GiB"), int64_t(22) << 30);
  EXPECT_EQ(readBytes("1.5 GB"), 1500000000);
  EXPECT_EQ(readBytes("512mib"), 512 << 20);
  EXPECT_EQ(readBytes("2TiB"), int64_t(2) << 40);
  EXPECT_EQ(readBytes("7kb"), 7000);
  EXPECT_EQ(readBytes("0.5KiB"), 512);
  EXPECT_EQ(readBytes("3B"), 3);
  for (const char *wrong : {"", "GiB", "0", "0.5", "-1", "1 GiBB", "1Gi", "1G",
                            "1e9", "nan", "1.2.3GB", "1PiB", "9999999TiB", "%"})
    EXPECT_EQ(readBytes(wrong), std::nullopt) << wrong;
  EXPECT_EQ(readPercentage("90%"), 0.9);
  EXPECT_EQ(readPercentage("12.5%"), 0.125);
  for (const char *wrong : {"", "%", "0%", "101%", "-1%", "90", "90 %%"})
    EXPECT_EQ(readPercentage(wrong), std::nullopt) << wrong;
}

TEST(Values, NumbersAsPeopleWriteThem) {
  EXPECT_EQ(numberText(0.1), "0.1");
  EXPECT_EQ(numberText(64), "64");
  EXPECT_EQ(readReal(numberText(1.0 / 3)), 1.0 / 3);
}
