//===- DataMutationTest.cpp - Damaged files never do worse than fail ------===//
//
// Every mutation must end in a value or in an Error: no crash, no hang, no
// other exception (run under the sanitizers, no overflow either).
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include "runtime/data/Dataset.h"

#include <random>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using Json = nlohmann::json;

namespace {

class Mutator {
public:
  explicit Mutator(uint32_t seed) : random(seed) {}

  uint32_t below(size_t bound) { return random() % bound; }

  std::string damageBytes(std::string text) {
    for (uint32_t left = 1 + below(4); left > 0 && !text.empty(); --left) {
      size_t place = below(text.size());
      switch (below(4)) {
      case 0:
        text[place] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(place, 1 + below(20));
        break;
      case 2:
        text.insert(place, text.substr(below(text.size()), below(30)));
        break;
      case 3:
        if (below(10) == 0)
          text.resize(place);
        else
          text[place] = "[]{}\",:0-1e"[below(11)];
      }
    }
    return text;
  }

  /// Replaces, removes or repeats a value somewhere in the tree.
  void damageTree(Json &value) {
    if (value.is_structured() && !value.empty() && below(6) != 0) {
      auto member = value.begin();
      std::advance(member, below(value.size()));
      if (below(12) == 0)
        value.erase(member);
      else if (value.is_array() && below(12) == 0)
        value.push_back(*member);
      else
        damageTree(*member);
      return;
    }
    static const Json others[] = {nullptr,
                                  true,
                                  -1,
                                  0,
                                  1,
                                  4294967296,
                                  UINT64_MAX,
                                  1.5,
                                  "",
                                  "a",
                                  "\uFFFD",
                                  "(((",
                                  "(a*)*",
                                  Json::array(),
                                  Json::object(),
                                  "Sequence",
                                  "Split",
                                  "ByteLevel",
                                  "Metaspace",
                                  "Replace"};
    value = others[below(std::size(others))];
  }

private:
  std::mt19937 random;
};

const std::string kText = "hello </s> ab ab's 123 é\n\n!!! <|pad|> ABBA \xFF 😀";

void tryTokenizer(const TemporaryFolder &folder, const std::string &bytes,
                  int &loaded) {
  try {
    auto tokenizer = loadTokenizerJson(folder.write("tokenizer.json", bytes));
    ++loaded;
    tokenizer->decode(tokenizer->encode(kText, true), true);
    std::vector<int32_t> ids;
    for (int32_t id = -2; id < 30; ++id)
      ids.push_back(id);
    tokenizer->decode(ids, false);
  } catch (const Error &error) {
    EXPECT_GE(error.id(), 2001) << error.what();
    EXPECT_LE(error.id(), 2004) << error.what();
  }
}

TEST(Mutation, TokenizerFiles) {
  TemporaryFolder folder;
  Mutator mutator(1);
  int loaded = 0;
  const int rounds = 400;
  for (const char *name : {"byte_fallback", "byte_level"}) {
    std::string good = readFile(inputPath(name) + "/tokenizer.json");
    Json document = Json::parse(good);
    for (int round = 0; round < rounds; ++round) {
      tryTokenizer(folder, mutator.damageBytes(good), loaded);
      Json damaged = document;
      for (uint32_t left = 1 + mutator.below(2); left > 0; --left)
        mutator.damageTree(damaged);
      tryTokenizer(folder, damaged.dump(), loaded);
    }
  }
  // Both outcomes must really occur for the test to mean something.
  EXPECT_GT(loaded, 100);
  EXPECT_LT(loaded, 4 * rounds - 100);
}

TEST(Mutation, DataFiles) {
  TemporaryFolder folder;
  Mutator mutator(2);
  auto tokenizer = loadInput("byte_level");
  int loaded = 0, refused = 0;
  for (const std::string &good :
       {std::string(R"({"instruction": "ab", "input": "", "output": "ab ab"})"
                    "\n"
                    R"({"instruction": "ab", "input": "12", "output": "é"})"
                    "\n"),
        std::string(R"([{"input_ids": [1, 2, 3], "labels": [-100, 2, 3]},)"
                    R"( {"input_ids": [4], "labels": [4], "note": {}}])")}) {
    for (int round = 0; round < 800; ++round) {
      std::string path = folder.write("data.json", mutator.damageBytes(good));
      try {
        Dataset dataset = loadDataset(path, tokenizer.get(), {});
        ++loaded;
        for (const Row &row : dataset.rows) {
          ASSERT_FALSE(row.ids.empty());
          ASSERT_EQ(row.ids.size(), row.labels.size());
          for (int32_t id : row.ids)
            ASSERT_TRUE(id >= 0 && id < tokenizer->vocabularySize());
        }
      } catch (const Error &error) {
        ++refused;
        EXPECT_GE(error.id(), 2101) << error.what();
        EXPECT_LE(error.id(), 2104) << error.what();
      }
    }
  }
  EXPECT_GT(loaded, 20);
  EXPECT_GT(refused, 100);
}

} // namespace
