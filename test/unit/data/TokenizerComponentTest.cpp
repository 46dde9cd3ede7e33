//===- TokenizerComponentTest.cpp - Each component of tokenizer.json ------===//
//
// The tokenizer here has no merges, and its vocabulary holds each character of
// the tests twice: as it is, and with "|" behind it for the end of a word. A
// decoder that only joins therefore shows what reached the model, with the
// words' borders drawn in: "ab|c|".
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include <gmock/gmock.h>

using namespace fsdpq::rt;
using namespace fsdpq::rt::test;
using Json = nlohmann::json;

namespace {

Json documentThatDrawsWords() {
  Json vocabulary = Json::object();
  auto add = [&](const std::string &token) {
    vocabulary.emplace(token, vocabulary.size());
  };
  for (const char *character :
       {"a", "b", "c", "d", "e", "A",      "i",      "1", "2",
        " ", "-", ".", "_", "é", "\u0301", "\u0307", "▁", "Ġ",
        "Ċ", "Ã", "©", "½", "⁄", "中",     "ﬁ",      "f"})
    for (const char *suffix : {"", "|"})
      add(std::string(character) + suffix);
  return {{"model",
           {{"type", "BPE"},
            {"end_of_word_suffix", "|"},
            {"vocab", vocabulary},
            {"merges", Json::array()}}},
          {"decoder", {{"type", "Fuse"}}}};
}

std::string draw(const Json &document, const std::string &text) {
  auto tokenizer = makeTokenizer(document);
  return tokenizer->decode(tokenizer->encode(text, false), false);
}

std::string preTokenized(const Json &component, const std::string &text) {
  Json document = documentThatDrawsWords();
  document["pre_tokenizer"] = component;
  return draw(document, text);
}

std::string normalized(const Json &component, const std::string &text) {
  Json document = documentThatDrawsWords();
  document["normalizer"] = component;
  return draw(document, text);
}

std::string decoded(const Json &component,
                    const std::vector<std::string> &tokens) {
  Json document = documentThatDrawsWords();
  Json vocabulary = Json::object();
  std::vector<int32_t> ids;
  for (const std::string &token : tokens) {
    vocabulary.emplace(token, vocabulary.size());
    ids.push_back(vocabulary[token].get<int32_t>());
  }
  document["model"]["vocab"] = vocabulary;
  document["decoder"] = component;
  return makeTokenizer(document)->decode(ids, false);
}

Json split(const Json &pattern, const char *behavior, bool invert = false) {
  return {{"type", "Split"},
          {"pattern", pattern},
          {"behavior", behavior},
          {"invert", invert}};
}

TEST(PreTokenizer, SplitBehaviors) {
  Json dash = {{"String", "-"}};
  EXPECT_EQ(preTokenized(nullptr, "a--b-c"), "a--b-c|");
  EXPECT_EQ(preTokenized(split(dash, "Removed"), "a--b-c"), "a|b|c|");
  EXPECT_EQ(preTokenized(split(dash, "Isolated"), "a--b-c"), "a|-|-|b|-|c|");
  EXPECT_EQ(preTokenized(split(dash, "MergedWithPrevious"), "a--b-c"),
            "a-|-|b-|c|");
  EXPECT_EQ(preTokenized(split(dash, "MergedWithNext"), "a--b-c"),
            "a|-|-b|-c|");
  EXPECT_EQ(preTokenized(split(dash, "Contiguous"), "a--b-c"), "a|--|b|-|c|");
}

TEST(PreTokenizer, SplitByExpression) {
  EXPECT_EQ(preTokenized(split({{"Regex", "[ab]+"}}, "Isolated"), "abcabd"),
            "ab|c|ab|d|");
  EXPECT_EQ(
      preTokenized(split({{"Regex", "[ab]+"}}, "Removed", true), "abcabd"),
      "ab|ab|");
  // Positions after characters of one, two, three and four bytes.
  EXPECT_EQ(preTokenized(split({{"Regex", "a"}}, "Isolated"), "éa中a"),
            "é|a|中|a|");
  // An empty match cuts without taking anything.
  EXPECT_EQ(preTokenized(split({{"Regex", "(?=b)"}}, "Isolated"), "abab"),
            "a|ba|b|");
  // Oniguruma's \w has the fraction; its \h is a hexadecimal digit.
  EXPECT_EQ(preTokenized(split({{"Regex", "\\w+"}}, "Isolated"), "a½-é_."),
            "a½|-|é_|.|");
  EXPECT_EQ(preTokenized(split({{"Regex", "\\h+"}}, "Isolated"), "a1i"),
            "a1|i|");
}

TEST(PreTokenizer, ByteLevel) {
  auto byteLevel = [](bool prefix, bool regex) {
    return Json{{"type", "ByteLevel"},
                {"add_prefix_space", prefix},
                {"trim_offsets", true},
                {"use_regex", regex}};
  };
  EXPECT_EQ(preTokenized(byteLevel(false, false), "a é\n"), "aĠÃ©Ċ|");
  EXPECT_EQ(preTokenized(byteLevel(true, false), "a"), "Ġa|");
  EXPECT_EQ(preTokenized(byteLevel(true, false), " a"), "Ġa|");
  EXPECT_EQ(preTokenized(byteLevel(false, true), "ab 12  a.."),
            "ab|Ġ12|Ġ|Ġa|..|");
}

TEST(PreTokenizer, Metaspace) {
  auto metaspace = [](const char *scheme, bool split) {
    return Json{{"type", "Metaspace"},
                {"replacement", "▁"},
                {"prepend_scheme", scheme},
                {"split", split}};
  };
  EXPECT_EQ(preTokenized(metaspace("always", true), "a b"), "▁a|▁b|");
  EXPECT_EQ(preTokenized(metaspace("always", true), " a"), "▁a|");
  EXPECT_EQ(preTokenized(metaspace("never", true), "a  b"), "a|▁|▁b|");
  EXPECT_EQ(preTokenized(metaspace("first", false), "a b"), "▁a▁b|");

  // "first" is the start of the text, not what follows an added token.
  Json document = documentThatDrawsWords();
  document["pre_tokenizer"] = metaspace("first", false);
  document["added_tokens"] = {{{"id", document["model"]["vocab"].size()},
                               {"content", "X"},
                               {"special", true}}};
  EXPECT_EQ(draw(document, "aXb"), "▁a|Xb|");
  document["pre_tokenizer"] = metaspace("always", false);
  EXPECT_EQ(draw(document, "aXb"), "▁a|X▁b|");
  // The older spelling of "never".
  Json old = {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"add_prefix_space", false}};
  EXPECT_EQ(preTokenized(old, "a b"), "a|▁b|");
}

TEST(PreTokenizer, CharacterClasses) {
  Json digits = {{"type", "Digits"}, {"individual_digits", false}};
  EXPECT_EQ(preTokenized(digits, "a12b½"), "a|12|b|½|");
  digits["individual_digits"] = true;
  EXPECT_EQ(preTokenized(digits, "a12b"), "a|1|2|b|");
  EXPECT_EQ(preTokenized({{"type", "Punctuation"}}, "a.-b"), "a|.|-|b|");
  EXPECT_EQ(
      preTokenized({{"type", "Punctuation"}, {"behavior", "Removed"}}, "a.-b"),
      "a|b|");
  EXPECT_EQ(preTokenized({{"type", "Whitespace"}}, "a_1 .-b"), "a_1|.-|b|");
  EXPECT_EQ(preTokenized({{"type", "WhitespaceSplit"}}, "a \n\u3000.-b"),
            "a|.-b|");
}

TEST(PreTokenizer, SequenceGoesOnWithThePieces) {
  Json sequence = {{"type", "Sequence"},
                   {"pretokenizers",
                    {split({{"String", " "}}, "MergedWithNext"),
                     {{"type", "Digits"}, {"individual_digits", true}}}}};
  EXPECT_EQ(preTokenized(sequence, "a 12 b"), "a| |1|2| b|");
}

TEST(Normalizer, UnicodeForms) {
  EXPECT_EQ(normalized({{"type", "NFC"}}, "e\u0301"), "é|");
  EXPECT_EQ(normalized({{"type", "NFD"}}, "é"), "e\u0301|");
  EXPECT_EQ(normalized({{"type", "NFKC"}}, "½ﬁ"), "1⁄2fi|");
  EXPECT_EQ(normalized({{"type", "NFKD"}}, "éﬁ"), "e\u0301fi|");
  EXPECT_EQ(normalized(nullptr, "e\u0301ﬁ"), "e\u0301ﬁ|");
}

TEST(Normalizer, Rewriting) {
  EXPECT_EQ(normalized({{"type", "Lowercase"}}, "Aİ"), "ai\u0307|");
  EXPECT_EQ(normalized({{"type", "StripAccents"}}, "e\u0301b"), "eb|");
  Json strip = {
      {"type", "Strip"}, {"strip_left", true}, {"strip_right", false}};
  EXPECT_EQ(normalized(strip, " \u3000a "), "a |");
  strip = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  EXPECT_EQ(normalized(strip, " a\u3000 "), "a|");
  EXPECT_EQ(normalized(strip, " \n "), "");
  EXPECT_EQ(normalized({{"type", "Prepend"}, {"prepend", "▁"}}, "a"), "▁a|");
  EXPECT_EQ(normalized({{"type", "Prepend"}, {"prepend", "▁"}}, ""), "");
  Json replace = {
      {"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", "-"}};
  EXPECT_EQ(normalized(replace, "a  b c"), "a-b-c|");
  replace["pattern"] = {{"String", "ab"}};
  replace["content"] = "$1";
  // Taken literally; $ is not in the vocabulary.
  EXPECT_EQ(normalized(replace, "cab"), "c1|");
  EXPECT_EQ(normalized({{"type", "ByteLevel"}}, "é "), "Ã©Ġ|");
}

TEST(TokenDecoder, EachKind) {
  EXPECT_EQ(decoded(nullptr, {"a", "b"}), "a b");
  EXPECT_EQ(decoded({{"type", "Fuse"}}, {"a", "b"}), "ab");
  EXPECT_EQ(decoded({{"type", "ByteFallback"}}, {"a", "<0xC3>", "<0xa9>", "b"}),
            "aéb");
  EXPECT_EQ(decoded({{"type", "ByteFallback"}}, {"<0xC3>", "<0xG9>"}),
            "\uFFFD<0xG9>");
  EXPECT_EQ(
      decoded({{"type", "BPEDecoder"}, {"suffix", "|"}}, {"a", "b|", "c|"}),
      "ab c");
  Json metaspace = {{"type", "Metaspace"}, {"replacement", "▁"}};
  EXPECT_EQ(decoded(metaspace, {"▁a", "▁b"}), "a b");
  metaspace["prepend_scheme"] = "never";
  EXPECT_EQ(decoded(metaspace, {"▁a", "▁b"}), " a b");
  Json strip = {{"type", "Strip"}, {"content", "."}, {"start", 2}, {"stop", 1}};
  EXPECT_EQ(decoded(strip, {"...a..", "."}), ".a.");
  // Not of the byte alphabet: taken as it is.
  EXPECT_EQ(decoded({{"type", "ByteLevel"}}, {"Ãģ", "中", "Ã", "©"}), "Á中é");
}

TEST(AddedTokens, LongestWinsAndNormalizedOnesMatchNormalizedText) {
  Json document = documentThatDrawsWords();
  size_t next = document["model"]["vocab"].size();
  document["normalizer"] = {{"type", "Lowercase"}};
  auto token = [&](const char *content, bool normalized) {
    return Json{
        {"id", next++}, {"content", content}, {"normalized", normalized}};
  };
  document["added_tokens"] = {token("X", false), token("XY", false),
                              token("BB", true)};
  EXPECT_EQ(draw(document, "aXYXb"), "a|XYXb|");
  // Found in either case; its text comes back in the normalised form.
  EXPECT_EQ(draw(document, "aBbx"), "a|bb");
  EXPECT_EQ(draw(document, "xy"), ""); // the raw text has no X; x is unknown
}

TEST(BpeModel, MergesByRankThenFromTheLeft) {
  Json model = {
      {"type", "BPE"},
      {"vocab", {{"a", 0}, {"b", 1}, {"aa", 2}, {"ab", 3}, {"aab", 4}}},
      {"merges", {"a b", "a a", "aa b"}}};
  auto ids = [&](const char *text) {
    return makeTokenizer({{"model", model}})->encode(text, false);
  };
  EXPECT_THAT(ids("aab"), testing::ElementsAre(0, 3));
  EXPECT_THAT(ids("aaa"), testing::ElementsAre(2, 0));
  model["merges"] = {"a a", "aa b", "a b"};
  EXPECT_THAT(ids("aab"), testing::ElementsAre(4));
  EXPECT_THAT(ids("aaab"), testing::ElementsAre(2, 3));
}

TEST(BpeModel, PrefixOfContinuationsAndUnknownTokens) {
  Json model = {{"type", "BPE"},
                {"unk_token", "?"},
                {"continuing_subword_prefix", "##"},
                {"vocab", {{"?", 0}, {"a", 1}, {"##b", 2}, {"ab", 3}}},
                {"merges", Json::array({Json::array({"a", "##b"})})}};
  auto ids = [&](const char *text) {
    return makeTokenizer({{"model", model}})->encode(text, false);
  };
  EXPECT_THAT(ids("ab"), testing::ElementsAre(3));
  EXPECT_THAT(ids("abb"), testing::ElementsAre(3, 2));
  EXPECT_THAT(ids("azzb"), testing::ElementsAre(1, 0, 0, 2));
  model["fuse_unk"] = true;
  EXPECT_THAT(ids("azzb"), testing::ElementsAre(1, 0, 2));
  model["unk_token"] = "none";
  EXPECT_THAT(ids("ab"), testing::ElementsAre(3));
  expectError(2003, "unknown token 'none'", [&] { ids("az"); });
}

TEST(PostProcessor, TemplateAroundTheText) {
  Json document = documentThatDrawsWords();
  Json single = {{{"SpecialToken", {{"id", "S"}, {"type_id", 0}}}},
                 {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
                 {{"SpecialToken", {{"id", "E"}, {"type_id", 0}}}}};
  Json processing = {
      {"type", "TemplateProcessing"},
      {"single", single},
      {"special_tokens", {{"S", {{"ids", {2, 4}}}}, {"E", {{"ids", {6}}}}}}};
  document["post_processor"] = {
      {"type", "Sequence"},
      {"processors", {{{"type", "ByteLevel"}}, processing}}};
  auto tokenizer = makeTokenizer(document);
  EXPECT_THAT(tokenizer->encode("a", true), testing::ElementsAre(2, 4, 1, 6));
  EXPECT_THAT(tokenizer->encode("a", false), testing::ElementsAre(1));

  document["post_processor"]["processors"] = {processing, processing};
  expectError(2002, "more than one TemplateProcessing",
              [&] { makeTokenizer(document); });
  processing["single"][1]["Sequence"]["id"] = "B";
  document["post_processor"] = processing;
  expectError(2001, "can only hold sequence 'A'",
              [&] { makeTokenizer(document); });
}

} // namespace
