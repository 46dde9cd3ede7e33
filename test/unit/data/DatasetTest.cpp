#include "TestFiles.h"

#include "runtime/data/Dataset.h"

#include <gmock/gmock.h>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using testing::ElementsAre;

namespace {

constexpr const char *kInstructionOnly =
    "Below is an instruction that describes a task. Write a response that "
    "appropriately completes the request.\n\n### Instruction:\nSay "
    "hi.\n\n### Response:";
constexpr const char *kWithInput =
    "Below is an instruction that describes a task, paired with an input that "
    "provides further context. Write a response that appropriately completes "
    "the request.\n\n### Instruction:\nSay hi.\n\n### Input:\nto "
    "Ann\n\n### Response:";

/// Stands for a tokenizer: one token a byte, a BOS (256) and an EOS (257).
class ByteTokenizer : public Tokenizer {
public:
  std::vector<int32_t> encode(std::string_view utf8,
                              bool addSpecialTokens) const override {
    std::vector<int32_t> ids;
    if (addSpecialTokens)
      ids.push_back(256);
    for (unsigned char byte : utf8)
      ids.push_back(byte);
    return ids;
  }
  std::string decode(const std::vector<int32_t> &ids, bool) const override {
    std::string text;
    for (int32_t id : ids)
      if (id < 256)
        text += static_cast<char>(id);
    return text;
  }
  int32_t vocabularySize() const override { return 258; }
  std::optional<int32_t> tokenId(std::string_view) const override { return {}; }
  std::optional<int32_t> bosId() const override { return 256; }
  std::optional<int32_t> eosId() const override { return eos; }

  std::optional<int32_t> eos = 257;
};

class DatasetTest : public testing::Test {
protected:
  Dataset load(const std::string &text, const char *name = "data.jsonl") {
    return loadDataset(folder.write(name, text),
                       useTokenizer ? &tokenizer : nullptr, options);
  }
  void refuses(int id, const std::string &part, const std::string &text) {
    expectError(id, part, [&] { load(text); });
  }

  TemporaryFolder folder;
  ByteTokenizer tokenizer;
  bool useTokenizer = true;
  DatasetOptions options;
};

TEST(AlpacaPrompt, Texts) {
  EXPECT_EQ(alpacaPrompt("Say hi.", ""), kInstructionOnly);
  EXPECT_EQ(alpacaPrompt("Say hi.", "to Ann"), kWithInput);
}

TEST_F(DatasetTest, AlpacaRows) {
  Dataset dataset = load(
      R"({"instruction": "Say hi.", "input": "", "output": "hi"})"
      "\n\n"
      R"({"output": "hi Ann", "instruction": "Say hi.", "input": "to Ann"})"
      "\r\n"
      R"({"instruction": "Say hi.", "output": "", "input": null, "id": 7})");
  EXPECT_EQ(dataset.format, DataFormat::Alpaca);
  EXPECT_EQ(dataset.description, "alpaca, 3 records");
  EXPECT_EQ(dataset.truncatedRows, 0);
  EXPECT_EQ(dataset.rowsWithoutLabels, 0);
  ASSERT_EQ(dataset.rows.size(), 3u);

  const Row &first = dataset.rows[0];
  size_t prompt = 1 + std::string(kInstructionOnly).size();
  EXPECT_EQ(tokenizer.decode(first.ids, true),
            std::string(kInstructionOnly) + "hi");
  ASSERT_EQ(first.ids.size(), prompt + 3);
  EXPECT_EQ(first.ids.front(), 256);
  EXPECT_EQ(
      std::vector<int32_t>(first.labels.begin(), first.labels.begin() + prompt),
      std::vector<int32_t>(prompt, kIgnoredLabel));
  EXPECT_THAT(
      std::vector<int32_t>(first.labels.begin() + prompt, first.labels.end()),
      ElementsAre('h', 'i', 257));

  EXPECT_EQ(tokenizer.decode(dataset.rows[1].ids, true),
            std::string(kWithInput) + "hi Ann");
  EXPECT_EQ(tokenizer.decode(dataset.rows[2].ids, true), kInstructionOnly);
  EXPECT_EQ(dataset.rows[2].labels.back(), 257);
}

TEST_F(DatasetTest, TruncationMayLeaveNothingToLearn) {
  options.contextLength = 10;
  Dataset dataset = load(R"([{"instruction": "a", "output": "b"}])");
  EXPECT_EQ(dataset.rows[0].ids.size(), 10u);
  EXPECT_EQ(dataset.rows[0].labels, std::vector<int32_t>(10, kIgnoredLabel));
  EXPECT_EQ(dataset.truncatedRows, 1);
  EXPECT_EQ(dataset.rowsWithoutLabels, 1);
}

TEST_F(DatasetTest, PretokenisedRows) {
  useTokenizer = false;
  options.contextLength = 3;
  Dataset dataset = load(R"([
    {"input_ids": [5, 6]},
    {"input_ids": [1, 2, 3, 4], "labels": [-100, -100, 3, 4]},
    {"input_ids": [9], "labels": [9], "attention_mask": [1]},
    {"input_ids": [7, 8], "labels": [7, -100]}
  ])",
                         "data.json");
  EXPECT_EQ(dataset.format, DataFormat::Pretokenised);
  EXPECT_EQ(dataset.description, "pre-tokenised, 4 records");
  EXPECT_THAT(dataset.rows[0].labels, ElementsAre(5, 6));
  EXPECT_THAT(dataset.rows[1].ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(dataset.rows[1].labels, ElementsAre(-100, -100, 3));
  EXPECT_EQ(dataset.truncatedRows, 1);
  // The only label of the last two rows is one that nothing predicts.
  EXPECT_EQ(dataset.rowsWithoutLabels, 2);
}

TEST_F(DatasetTest, IdsAreBelowTheVocabulary) {
  refuses(2103,
          "'input_ids' holds 258 at position 1; it must be an integer "
          "from 0 to 257",
          R"({"input_ids": [0, 258]})");
  options.vocabularySize = 10;
  refuses(2103, "0 to 9, or -100", R"({"input_ids": [0], "labels": [10]})");
  refuses(2103, "holds -100", R"({"input_ids": [-100]})");
  refuses(2103, "holds -1", R"({"input_ids": [1], "labels": [-1]})");
  refuses(2103, "holds 1.5", R"({"input_ids": [1.5]})");
  refuses(2103, "holds \"1\"", R"({"input_ids": ["1"]})");
  options.vocabularySize = 0;
  useTokenizer = false;
  EXPECT_EQ(load(R"({"input_ids": [2147483646]})").rows[0].ids[0], 2147483646);
  refuses(2103, "holds 2147483647", R"({"input_ids": [2147483647]})");
  refuses(2103, "holds 18446744073709551615",
          R"({"input_ids": [18446744073709551615]})");
}

TEST_F(DatasetTest, RefusesBadRecords) {
  refuses(2103, "'labels' has 1 values for 2 'input_ids'",
          R"({"input_ids": [1, 2], "labels": [1]})");
  refuses(2103, "'input_ids' is empty", R"({"input_ids": []})");
  refuses(2103, "'input_ids' must be an array", R"({"input_ids": 5})");
  refuses(2103, "'attention_mask' is not 2 ones",
          R"({"input_ids": [1, 2], "attention_mask": [1, 0]})");
  refuses(2103, "'output' must be a string, found number",
          R"({"instruction": "a", "output": 4})");
  refuses(2103, "'input' must be a string, found array",
          R"({"instruction": "a", "output": "b", "input": []})");
  refuses(2102, "no known form has the record's keys: answer, question",
          R"({"question": "a", "answer": "b"})");
  refuses(2102, "no known form has the record's keys: none", "{}");
  refuses(2102, "the keys of two forms",
          R"({"instruction": "a", "output": "b", "input_ids": [1]})");
}

TEST_F(DatasetTest, NamesThePlace) {
  refuses(2102, "data.jsonl:3: record 2",
          R"({"instruction": "a", "output": "b"})"
          "\n\n"
          R"({"instruction": "a"})");
  refuses(2102, "the key 'instruction' is missing; found: input_ids",
          R"({"instruction": "a", "output": "b"})"
          "\n"
          R"({"input_ids": [1]})");
  refuses(2101, "data.jsonl:2: record 2",
          R"({"instruction": "a", "output": "b"})"
          "\n{\"instruction\": ");
  refuses(2101, "the key 'output' stands twice",
          R"({"instruction": "a", "output": "b", "output": "c"})");
  refuses(2101, "data.jsonl: record 2",
          R"([{"input_ids": [1]}, {"input_ids": [1], "x": {"y": 1, "y": 2}}])");
  refuses(2101, "a record is not an object", R"([{"input_ids": [1]}, 4])");
  refuses(2101, "a record is not an object", "[[1, 2]]");
  refuses(2101, "a record is not an object but number", "4");
  refuses(2101, "not valid JSON", R"([{"input_ids": [1]})");
  refuses(2101, "not valid JSON", "{\"instruction\": \"\xFF\"}");
  refuses(2101, "not valid JSON", R"({"input_ids": [1e999]})");
  refuses(2101, "not valid JSON", R"({"input_ids": [NaN]})");
}

TEST_F(DatasetTest, RefusesEmptyFiles) {
  refuses(2104, "no records", "");
  refuses(2104, "no records", " \n\n");
  refuses(2104, "no records", "[]");
  refuses(2104, "no records", "\xEF\xBB\xBF[]");
  expectError(1301, "No such file", [&] {
    loadDataset("/nonexistent/data.json", &tokenizer, options);
  });
}

TEST_F(DatasetTest, TextNeedsATokenizerWithEos) {
  tokenizer.eos = std::nullopt;
  refuses(2105, "names no end-of-sequence token",
          R"({"instruction": "a", "output": "b"})");
  useTokenizer = false;
  refuses(2105, "there is no tokenizer",
          R"({"instruction": "a", "output": "b"})");
}

TEST_F(DatasetTest, TheFormatCanBeGiven) {
  options.format = DataFormat::Pretokenised;
  Dataset dataset =
      load(R"({"input_ids": [1, 2], "instruction": "a", "output": "b"})");
  EXPECT_THAT(dataset.rows[0].ids, ElementsAre(1, 2));
  options.format = DataFormat::Alpaca;
  refuses(2102, "the key 'instruction' is missing", R"({"input_ids": [1]})");
  options.contextLength = 0;
  refuses(2103, "the context length must be at least 1", "{}");
}

} // namespace
