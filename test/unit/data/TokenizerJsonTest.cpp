//===- TokenizerJsonTest.cpp - Whole tokenizer.json files -----------------===//

#include "TestFiles.h"

#include <gmock/gmock.h>
#include <thread>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

using Ids = std::vector<int32_t>;

nlohmann::json inputDocument(const std::string &name) {
  return nlohmann::json::parse(readFile(inputPath(name) + "/tokenizer.json"));
}

/// Encodes with special tokens and decodes back without them.
void expectIds(const Tokenizer &tokenizer, const std::string &text, Ids ids,
               const std::string &decoded) {
  EXPECT_EQ(tokenizer.encode(text, true), ids) << "of '" << text << "'";
  EXPECT_EQ(tokenizer.decode(ids, true), decoded) << "of '" << text << "'";
}

TEST(TokenizerJson, ByteFallbackLikeSentencePiece) {
  auto tokenizer = loadInput("byte_fallback");
  EXPECT_EQ(tokenizer->vocabularySize(), 20);
  EXPECT_EQ(tokenizer->bosId(), 1);
  EXPECT_EQ(tokenizer->eosId(), 2);
  EXPECT_EQ(tokenizer->tokenId("hello"), 18);
  EXPECT_EQ(tokenizer->tokenId("bye"), std::nullopt);

  expectIds(*tokenizer, "", {1}, "");
  expectIds(*tokenizer, "hello", {1, 19}, "hello");
  expectIds(*tokenizer, "hello hello", {1, 19, 19}, "hello hello");
  expectIds(*tokenizer, " hello", {1, 10, 19}, " hello");
  // The second one has no mark before it.
  expectIds(*tokenizer, "hellohello", {1, 19, 18}, "hellohello");
  expectIds(*tokenizer, "\n", {1, 10, 3}, "\n");
  expectIds(*tokenizer, "é", {1, 10, 4, 5}, "é");
  expectIds(*tokenizer, "😀", {1, 10, 6, 7, 8, 9}, "😀");
  // z has no byte token; two of them fuse to one <unk>.
  expectIds(*tokenizer, "zz", {1, 10, 0}, "");
  expectIds(*tokenizer, "z hello", {1, 10, 0, 19}, " hello");
}

TEST(TokenizerJson, SpecialTokensInTheText) {
  auto tokenizer = loadInput("byte_fallback");
  expectIds(*tokenizer, "</s>hello", {1, 2, 19}, "hello");
  expectIds(*tokenizer, "hello</s>", {1, 19, 2}, "hello");
  EXPECT_THAT(tokenizer->encode("hello</s>", false), ElementsAre(19, 2));
  EXPECT_EQ(tokenizer->decode({1, 19, 2}, false), "<s> hello</s>");
}

TEST(TokenizerJson, DecodesBrokenBytesAndUnknownIds) {
  auto fallback = loadInput("byte_fallback");
  EXPECT_EQ(fallback->decode({4, 4, 5}, true), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(fallback->decode({18, 99, 1, -1, 19}, true), "hello hello");
  auto byteLevel = loadInput("byte_level");
  EXPECT_EQ(byteLevel->decode({7, 7, 8}, true), "\uFFFDé");
}

TEST(TokenizerJson, ByteLevelLikeLlama3AndQwen) {
  auto tokenizer = loadInput("byte_level");
  EXPECT_EQ(tokenizer->vocabularySize(), 23);
  EXPECT_EQ(tokenizer->bosId(), std::nullopt);
  EXPECT_EQ(tokenizer->eosId(), 20);

  expectIds(*tokenizer, "ab", {12}, "ab");
  expectIds(*tokenizer, "ab  ab", {12, 5, 13}, "ab  ab");
  // The word is in the vocabulary, so the merges, which give b ab, are ignored.
  expectIds(*tokenizer, "bab", {17}, "bab");
  expectIds(*tokenizer, "babab", {1, 12, 12}, "babab");
  expectIds(*tokenizer, "1231", {14, 4, 2}, "1231");
  // NFC: e with a combining accent is the same as the one character.
  expectIds(*tokenizer, "e\u0301 é", {15, 5, 15}, "é é");
  expectIds(*tokenizer, "ab's", {12, 18}, "ab's");
  expectIds(*tokenizer, "a\n\nb", {0, 6, 6, 1}, "a\n\nb");
  expectIds(*tokenizer, "!!!", {19, 11}, "!!!");
}

TEST(TokenizerJson, AddedTokensTakeSpaceAndWholeWords) {
  auto tokenizer = loadInput("byte_level");
  expectIds(*tokenizer, "a <|pad|> b", {0, 21, 1}, "ab");
  expectIds(*tokenizer, "ab<|end|>ab", {12, 20, 12}, "abab");
  expectIds(*tokenizer, "ABBA", {22}, "ABBA");
  // Not a word of its own; its letters are not in the vocabulary.
  expectIds(*tokenizer, "xABBA", {}, "");
  expectIds(*tokenizer, "ABBA ABBAs", {22, 5, 10}, "ABBA s");
}

TEST(TokenizerJson, IllFormedTextIsReadAsReplacementCharacters) {
  nlohmann::json document = inputDocument("byte_level");
  document["model"]["vocab"].erase("3");
  document["model"]["vocab"]["ï¿½"] = 4; // U+FFFD in the byte alphabet
  auto tokenizer = makeTokenizer(document);
  EXPECT_THAT(tokenizer->encode("ab\xFF", false), ElementsAre(12, 4));
  // A character cut off is one, a stray trail byte another.
  EXPECT_THAT(tokenizer->encode("\xF0\x9F\x98", false), ElementsAre(4));
  EXPECT_THAT(tokenizer->encode("\xC3"
                                "1\x80",
                                false),
              ElementsAre(4, 2, 4));
}

TEST(TokenizerJson, LongTextsTakeLinearTime) {
  const size_t length = 300'000;
  auto byteLevel = loadInput("byte_level");
  auto start = std::chrono::steady_clock::now();
  // One word of many equal characters: deep for the regular expression ...
  EXPECT_EQ(byteLevel->encode(std::string(length, '!'), false),
            Ids(length / 2, 19));
  // ... and for the merges: "a" and "b" in turns, all merged in one word.
  std::string turns;
  for (size_t index = 0; index < length / 2; ++index)
    turns += "ab";
  EXPECT_EQ(byteLevel->encode(turns, false), Ids(length / 2, 12));
  EXPECT_EQ(byteLevel->encode(std::string(length, ' ') + "ab", false).size(),
            length);
  auto fallback = loadInput("byte_fallback");
  EXPECT_EQ(fallback->encode(std::string(length, 'l'), false).size(),
            length / 2 + 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(TokenizerJson, ThreadsShareATokenizer) {
  auto tokenizer = loadInput("byte_level");
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids &result : results)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        result = tokenizer->encode("ab " + std::to_string(round) + " ab", true);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Ids &result : results)
    EXPECT_THAT(result, ElementsAre(12, 5, 2, 13)); // no 9 in the vocabulary
}

TEST(TokenizerJson, RefusesMalformedFiles) {
  TemporaryFolder folder;
  expectError(2001, "not a JSON document", [&] {
    loadTokenizerJson(
        folder.write("tokenizer.json", "version https://git-lfs"));
  });
  expectError(1301, "No such file", [] { loadTokenizerJson("/nonexistent"); });

  using Json = nlohmann::json;
  const Json good = inputDocument("byte_fallback");
  auto refuses = [&](int id, const std::string &part, const char *pointer,
                     Json value) {
    Json document = good;
    document[Json::json_pointer(pointer)] = std::move(value);
    expectError(id, part, [&] { makeTokenizer(document); });
  };
  for (const char *key : {"vocab", "merges"}) {
    Json document = good;
    document["model"].erase(key);
    expectError(2001, std::string("missing field '") + key + "'",
                [&] { makeTokenizer(document); });
  }
  refuses(2001, "model", "/model", 3);
  refuses(2002, "the tokenizer model 'Unigram'", "/model/type", "Unigram");
  refuses(2002, "'dropout'", "/model/dropout", 0.1);
  refuses(2001, "model.vocab.hello", "/model/vocab/hello", -1);
  refuses(2001, "outside 0 to 16777215", "/model/vocab/hello", 1u << 31);
  refuses(2001, "outside", "/model/vocab/hello", 0xFFFFFFFFFFFFFFFFu);
  refuses(2001, "expected an integer", "/model/vocab/hello", 1.5);
  refuses(2003, "share the id 3", "/model/vocab/hello", 3);
  refuses(2001, "merge 0 is not two tokens", "/model/merges/0", "h e l");
  refuses(2001, "merge 0 is neither", "/model/merges/0", 7);
  refuses(2003, "'q', which is not in the vocabulary", "/model/merges/0",
          "h q");
  refuses(2003, "'eh', which is not in the vocabulary", "/model/merges/0",
          "e h");
  refuses(2003, "has the id 7, but by its place it is 1", "/added_tokens/1/id",
          7);
  refuses(2001, "added_tokens[1].content", "/added_tokens/1/content", 1);
  refuses(2003, "adds the id 55", "/post_processor/special_tokens/<s>/ids/0",
          55);
  refuses(2001, "missing field '<s>'", "/post_processor/special_tokens",
          Json::object());
  refuses(2001, "expected one character", "/decoder/decoders/3/content", "ab");
}

TEST(TokenizerJson, RefusesComponentsItDoesNotKnow) {
  using Json = nlohmann::json;
  const Json good = inputDocument("byte_fallback");
  auto refuses = [&](const std::string &part, const char *pointer, Json value) {
    Json document = good;
    document[Json::json_pointer(pointer)] = std::move(value);
    expectError(2002, part, [&] { makeTokenizer(document); });
  };
  refuses("the normalizer 'Precompiled'", "/normalizer",
          {{"type", "Precompiled"}});
  refuses("the pre-tokenizer 'UnicodeScripts'", "/pre_tokenizer",
          {{"type", "UnicodeScripts"}});
  refuses("the post-processor 'BertProcessing'", "/post_processor",
          {{"type", "BertProcessing"}});
  refuses("the decoder 'CTC'", "/decoder", {{"type", "CTC"}});
  refuses("the split behavior 'Sideways'", "/pre_tokenizer",
          {{"type", "Split"},
           {"pattern", {{"String", " "}}},
           {"behavior", "Sideways"},
           {"invert", false}});
}

TEST(TokenizerJson, RefusesBadAndExplosivePatterns) {
  nlohmann::json document = inputDocument("byte_level");
  auto &pattern =
      document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
  pattern = "(a";
  expectError(2004, "U_REGEX_MISMATCHED_PAREN",
              [&] { makeTokenizer(document); });
  pattern = "(a|aa)+b";
  auto tokenizer = makeTokenizer(document);
  expectError(2004, "splitting a text of 100 bytes failed",
              [&] { tokenizer->encode(std::string(100, 'a'), false); });
}

TEST(TokenizerJson, RefusesDeepNesting) {
  nlohmann::json document = inputDocument("byte_level");
  for (int depth = 0; depth < 1000; ++depth)
    document["normalizer"] = {
        {"type", "Sequence"},
        {"normalizers", nlohmann::json::array({document["normalizer"]})}};
  expectError(2001, "nested deeper than 16 levels",
              [&] { makeTokenizer(document); });
}

TEST(TokenizerJson, SpecialTokensOfTheConfiguration) {
  TemporaryFolder folder;
  std::string path = folder.write(
      "tokenizer.json", readFile(inputPath("byte_level/tokenizer.json")));
  EXPECT_EQ(loadTokenizerJson(path)->eosId(), std::nullopt);
  folder.write("special_tokens_map.json",
               R"({"eos_token": {"content": "<|pad|>"}, "bos_token": "a"})");
  EXPECT_EQ(loadTokenizerJson(path)->eosId(), 21);
  EXPECT_EQ(loadTokenizerJson(path)->bosId(), 0);
  // tokenizer_config.json comes first.
  folder.write("tokenizer_config.json", R"({"eos_token": "<|end|>"})");
  EXPECT_EQ(loadTokenizerJson(path)->eosId(), 20);
  folder.write("tokenizer_config.json", R"({"eos_token": "<|other|>"})");
  expectError(2003, "'<|other|>' is not in the vocabulary",
              [&] { loadTokenizerJson(path); });
}

} // namespace
