//===- TokenizerOracleTest.cpp - Against the reference libraries ----------===//
//
// FSDPQ_ORACLE names the folder of golden data (tokenizer/, data/, smollm2/),
// FSDPQ_TOKENIZERS the one with <name>/tokenizer.json, unpacked, and
// FSDPQ_GGUF_METADATA a JSON file with the metadata of SmolLM2's GGUF file.
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include "runtime/data/Dataset.h"
#include "runtime/data/MicroBatch.h"

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using Json = nlohmann::json;

namespace {

class TokenizerOracle : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    const char *oracleFolder = std::getenv("FSDPQ_ORACLE");
    const char *tokenizersFolder = std::getenv("FSDPQ_TOKENIZERS");
    if (!oracleFolder || !tokenizersFolder)
      GTEST_SKIP() << "FSDPQ_ORACLE and FSDPQ_TOKENIZERS are not set";
    oracle = oracleFolder;
    tokenizer = loadTokenizerJson(std::string(tokenizersFolder) + "/" +
                                  GetParam() + "/tokenizer.json");
  }

  std::string oracle;
  std::unique_ptr<Tokenizer> tokenizer;
};

TEST_P(TokenizerOracle, EveryCase) {
  Json file =
      Json::parse(readFile(oracle + "/tokenizer/" + GetParam() + ".json"));
  EXPECT_EQ(tokenizer->eosId(), file["eos_id"].get<int32_t>());
  ASSERT_FALSE(file["cases"].empty());
  for (const Json &example : file["cases"]) {
    auto text = example["text"].get<std::string>();
    SCOPED_TRACE(example["text"].dump(-1, ' ', true));
    auto ids = example["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer->encode(text, true), ids);
    EXPECT_EQ(tokenizer->encode(text, false),
              example["ids_no_special"].get<std::vector<int32_t>>());
    EXPECT_EQ(tokenizer->decode(ids, true), example["decoded_skip"]);
    EXPECT_EQ(tokenizer->decode(ids, false), example["decoded_keep"]);
  }
}

TEST_P(TokenizerOracle, ChatTexts) {
  Json file =
      Json::parse(readFile(oracle + "/tokenizer/" + GetParam() + ".chat.json"));
  if (!file.contains("cases"))
    GTEST_SKIP() << "this tokenizer has no chat template";
  for (const Json &example : file["cases"]) {
    if (!example["plain_tokenizers_agree"].get<bool>())
      continue;
    EXPECT_EQ(tokenizer->encode(example["text"].get<std::string>(), false),
              example["ids"].get<std::vector<int32_t>>());
  }
}

TEST_P(TokenizerOracle, AlpacaRowsAndBatches) {
  Json file =
      Json::parse(readFile(oracle + "/data/" + GetParam() + ".expected.json"));
  const Json &rows = file["alpaca.rows"];
  std::string path = oracle + "/data/alpaca.jsonl";
  DatasetOptions options;
  options.contextLength = 100'000;
  Dataset whole = loadDataset(path, tokenizer.get(), options);
  ASSERT_EQ(whole.rows.size(), rows.size());
  EXPECT_EQ(whole.description, "alpaca, 8 records");
  for (size_t index = 0; index < rows.size(); ++index) {
    auto ids = rows[index]["full_ids"].get<std::vector<int32_t>>();
    std::vector<int32_t> labels = ids;
    std::fill_n(labels.begin(), rows[index]["n_masked"].get<int>(),
                kIgnoredLabel);
    EXPECT_EQ(whole.rows[index].ids, ids);
    EXPECT_EQ(whole.rows[index].labels, labels);
  }

  // A batch there is padded to its longest row and then cut; take both back.
  auto eos = file["head"]["eos_id"].get<int32_t>();
  options.contextLength = file["head"]["context_length"].get<int64_t>();
  Dataset cut = loadDataset(path, tokenizer.get(), options);
  for (const Json &batch : file["alpaca.batches"])
    for (size_t place = 0; place < batch["rows"].size(); ++place) {
      Row row = cut.rows[batch["rows"][place].get<size_t>()];
      auto ids = batch["input_ids"][place].get<std::vector<int32_t>>();
      ASSERT_LE(row.ids.size(), ids.size());
      row.ids.resize(ids.size(), eos);
      row.labels.resize(ids.size(), kIgnoredLabel);
      EXPECT_EQ(row.ids, ids);
      EXPECT_EQ(row.labels, batch["labels"][place].get<std::vector<int32_t>>());
    }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, TokenizerOracle,
                         testing::Values("mistral7b", "llama3", "qwen3"),
                         [](const auto &info) { return info.param; });

TEST(TokenizerGgufOracle, SmolLM2) {
  const char *oracle = std::getenv("FSDPQ_ORACLE");
  const char *metadata = std::getenv("FSDPQ_GGUF_METADATA");
  if (!oracle || !metadata)
    GTEST_SKIP() << "FSDPQ_ORACLE and FSDPQ_GGUF_METADATA are not set";
  auto tokenizer = loadTokenizerGguf(Json::parse(readFile(metadata)));
  Json file =
      Json::parse(readFile(std::string(oracle) + "/smollm2/expected.json"));
  ASSERT_FALSE(file["texts"].empty());
  for (const Json &example : file["texts"]) {
    auto text = example["text"].get<std::string>();
    auto ids = example["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer->encode(text, false), ids);
    EXPECT_EQ(tokenizer->decode(ids, false), text);
  }
}

} // namespace
