//===- TokenizerGgufTest.cpp - The tokenizer of a GGUF file ---------------===//

#include "TestFiles.h"

#include <gmock/gmock.h>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using Json = nlohmann::json;
using testing::ElementsAre;

namespace {

Json smallMetadata() {
  return {{"general.architecture", "llama"},
          {"tokenizer.ggml.model", "gpt2"},
          {"tokenizer.ggml.pre", "smollm"},
          {"tokenizer.ggml.tokens",
           {"<|end|>", "a", "b", "1", "2", "Ġ", "ab", "12", "Ġ1", "Ġa", "<x>"}},
          {"tokenizer.ggml.token_type", {3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4}},
          {"tokenizer.ggml.merges", {"a b", "Ġ 1", "1 2", "Ġ a"}},
          {"tokenizer.ggml.bos_token_id", 1},
          {"tokenizer.ggml.eos_token_id", 0}};
}

TEST(TokenizerGguf, PreTokenizerByName) {
  Json metadata = smallMetadata();
  auto ids = [&] {
    return loadTokenizerGguf(metadata)->encode("a 12ab", false);
  };
  EXPECT_THAT(ids(), ElementsAre(1, 5, 3, 4, 6)); // every digit alone
  metadata["tokenizer.ggml.pre"] = "gpt-2";
  EXPECT_THAT(ids(), ElementsAre(1, 8, 4, 6)); // the space goes with the digits
  metadata["tokenizer.ggml.pre"] = "llama-bpe";
  EXPECT_THAT(ids(), ElementsAre(1, 5, 7, 6)); // up to three digits, no space
  metadata["tokenizer.ggml.pre"] = "qwen2";
  EXPECT_THAT(ids(), ElementsAre(1, 5, 3, 4, 6));
  metadata.erase("tokenizer.ggml.pre");
  EXPECT_THAT(ids(), ElementsAre(1, 5, 7, 6));
  metadata["tokenizer.ggml.pre"] = "deepseek-llm";
  expectError(2002, "the pre-tokenizer 'deepseek-llm'", [&] { ids(); });
}

TEST(TokenizerGguf, SpecialTokens) {
  Json metadata = smallMetadata();
  auto tokenizer = loadTokenizerGguf(metadata);
  EXPECT_EQ(tokenizer->vocabularySize(), 11);
  EXPECT_EQ(tokenizer->bosId(), 1);
  EXPECT_EQ(tokenizer->eosId(), 0);
  EXPECT_THAT(tokenizer->encode("ab<|end|><x>ab", true),
              ElementsAre(6, 0, 10, 6));
  EXPECT_EQ(tokenizer->decode({6, 0, 10, 9}, true), "ab<x> a");
  EXPECT_EQ(tokenizer->decode({6, 0, 10, 9}, false), "ab<|end|><x> a");
}

TEST(TokenizerGguf, BosAndEosOnRequest) {
  Json metadata = smallMetadata();
  auto ids = [&] { return loadTokenizerGguf(metadata)->encode("ab", true); };
  EXPECT_THAT(ids(), ElementsAre(6));
  metadata["tokenizer.ggml.add_bos_token"] = true;
  metadata["tokenizer.ggml.add_eos_token"] = true;
  EXPECT_THAT(ids(), ElementsAre(1, 6, 0));
  // Llama 3 adds a BOS unless told not to.
  metadata["tokenizer.ggml.pre"] = "llama-bpe";
  metadata.erase("tokenizer.ggml.add_bos_token");
  metadata.erase("tokenizer.ggml.add_eos_token");
  EXPECT_THAT(ids(), ElementsAre(1, 6));
  metadata["tokenizer.ggml.add_bos_token"] = false;
  EXPECT_THAT(ids(), ElementsAre(6));
}

TEST(TokenizerGguf, RefusesWhatItCannotRead) {
  auto refuses = [](int id, const std::string &part, const std::string &key,
                    Json value) {
    Json metadata = smallMetadata();
    metadata["tokenizer.ggml." + key] = std::move(value);
    expectError(id, part, [&] { loadTokenizerGguf(metadata); });
  };
  expectError(2001, "missing field 'tokenizer.ggml.model'",
              [] { loadTokenizerGguf(Json::object()); });
  refuses(2002, "the tokenizer model 'llama'", "model", "llama");
  refuses(2001, "token 0 is not a string", "tokens", {1});
  refuses(2003, "name the same token 'a'", "tokens", {"a", "a"});
  refuses(2003, "one type for each of the 11 tokens", "token_type", {1});
  refuses(2001, "outside 0 to 10", "eos_token_id", 11);
  refuses(2003, "not in the vocabulary", "merges", {"a c"});
  refuses(2001, "expected a string", "pre", 5);
}

} // namespace
