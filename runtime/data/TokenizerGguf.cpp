//===- TokenizerGguf.cpp - The tokenizer inside a GGUF file ---------------===//
//
// A GGUF file holds the vocabulary and the merges, but of the splitting only a
// name, tokenizer.ggml.pre, which llama.cpp maps to regular expressions. The
// loader rewrites all that as a tokenizer.json document: one pipeline serves
// both.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/BpeTokenizer.h"

#include <string_view>

namespace fsdpq::rt {
namespace {

using Json = nlohmann::json;

constexpr const char *kPrefix = "tokenizer.ggml.";

/// Values of tokenizer.ggml.token_type.
enum TokenType { Unknown = 2, Control = 3, UserDefined = 4 };

constexpr const char *kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|)"
    R"(\s+(?!\S)|\s+)";

/// The words of Llama 3 and Qwen 2, which differ in how many digits make one.
#define FSDPQ_WORDS_WITH_DIGITS(digits)                                        \
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" digits           \
  R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"

struct PreTokenizerName {
  std::string_view name;
  std::vector<const char *> patterns; // each applied to what the last one left
  bool ignoreMerges;                  // whole words of the vocabulary first
  bool addBos;                        // unless add_bos_token says otherwise
};

const PreTokenizerName *findPreTokenizer(std::string_view name) {
  static const std::vector<const char *> gpt2 = {kGpt2Words};
  static const std::vector<const char *> singleDigits = {R"(\p{N})",
                                                         kGpt2Words};
  static const std::vector<const char *> llama3 = {
      FSDPQ_WORDS_WITH_DIGITS(R"(\p{N}{1,3})")};
  static const std::vector<const char *> qwen2 = {
      FSDPQ_WORDS_WITH_DIGITS(R"(\p{N})")};
  static const std::vector<const char *> byDefault = {
      R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Words, R"(\p{N}+)", "[0-9][0-9][0-9]"};
  static const std::vector<PreTokenizerName> table = {
      {"default", byDefault, false, false},
      {"gpt-2", gpt2, false, false},
      {"phi-2", gpt2, false, false},
      {"mpt", gpt2, false, false},
      {"olmo", gpt2, false, false},
      {"smollm", singleDigits, false, false},
      {"starcoder", singleDigits, false, false},
      {"refact", singleDigits, false, false},
      {"command-r", singleDigits, false, false},
      {"codeshell", singleDigits, false, false},
      {"llama3", llama3, true, true},
      {"llama-v3", llama3, true, true},
      {"llama-bpe", llama3, true, true},
      {"qwen2", qwen2, false, false},
      {"stablelm2", qwen2, false, false},
  };
  for (const PreTokenizerName &entry : table)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

#undef FSDPQ_WORDS_WITH_DIGITS

/// A metadata value, named in messages by its full key.
JsonField key(const JsonField &metadata, const std::string &name) {
  return metadata.at(kPrefix + name);
}
std::optional<JsonField> findKey(const JsonField &metadata,
                                 const std::string &name) {
  return metadata.find(kPrefix + name);
}

Json splittingOf(const PreTokenizerName &pre) {
  Json parts = Json::array();
  for (const char *pattern : pre.patterns)
    parts.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  parts.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"use_regex", false}});
  return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
}

Json vocabularyOf(const JsonField &tokens) {
  if (!tokens.json().is_array())
    tokens.fail(2001, "expected an array of strings");
  Json vocabulary = Json::object();
  for (size_t id = 0; id < tokens.json().size(); ++id) {
    const Json &token = tokens.json()[id];
    if (!token.is_string())
      tokens.fail(2001, "token " + std::to_string(id) + " is not a string");
    auto [other, isNew] = vocabulary.emplace(token.get<std::string>(), id);
    if (!isNew)
      tokens.fail(2003, "the ids " + other->dump() + " and " +
                            std::to_string(id) + " name the same token '" +
                            token.get<std::string>() + "'");
  }
  return vocabulary;
}

Json addedTokensOf(const JsonField &tokens, const JsonField &types) {
  if (!types.json().is_array() || types.json().size() != tokens.json().size())
    types.fail(2003, "there must be one type for each of the " +
                         std::to_string(tokens.json().size()) + " tokens");
  Json added = Json::array();
  for (size_t id = 0; id < tokens.json().size(); ++id) {
    const Json &type = types.json()[id];
    if (!type.is_number_integer())
      types.fail(2001, "type " + std::to_string(id) + " is not an integer");
    bool special = type == Unknown || type == Control;
    if (!special && type != UserDefined)
      continue;
    added.push_back({{"id", id},
                     {"content", tokens.json()[id]},
                     {"special", special},
                     {"normalized", false}});
  }
  return added;
}

std::optional<int32_t> specialId(const JsonField &metadata,
                                 const std::string &name, size_t tokens) {
  std::optional<JsonField> field = findKey(metadata, name);
  if (!field)
    return std::nullopt;
  return static_cast<int32_t>(
      field->integer(0, static_cast<int64_t>(tokens) - 1));
}

Json templatePiece(const char *name) {
  return {{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
}

/// BOS and EOS around the text, as far as the file asks for them.
Json postProcessingOf(const JsonField &metadata, bool addBosByDefault,
                      std::optional<int32_t> bos, std::optional<int32_t> eos) {
  auto asks = [&](const char *name, bool otherwise) {
    std::optional<JsonField> field = findKey(metadata, name);
    return field ? field->boolean() : otherwise;
  };
  Json pieces = Json::array(), specials = Json::object();
  if (bos && asks("add_bos_token", addBosByDefault)) {
    pieces.push_back(templatePiece("bos"));
    specials["bos"] = {{"ids", Json::array({*bos})}};
  }
  pieces.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (eos && asks("add_eos_token", false)) {
    pieces.push_back(templatePiece("eos"));
    specials["eos"] = {{"ids", Json::array({*eos})}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", std::move(pieces)},
          {"special_tokens", std::move(specials)}};
}

} // namespace

std::unique_ptr<Tokenizer> loadTokenizerGguf(const nlohmann::json &metadata) {
  JsonField root(metadata, "GGUF metadata");
  JsonField model = key(root, "model");
  if (model.string() != "gpt2")
    model.failUnsupported("tokenizer model", model.string());
  // llama.cpp's first BPE files had no such key.
  std::optional<JsonField> preName = findKey(root, "pre");
  const PreTokenizerName *pre =
      findPreTokenizer(preName ? preName->string() : "default");
  if (!pre)
    preName->failUnsupported("pre-tokenizer", preName->string());

  JsonField tokens = key(root, "tokens");
  Json vocabulary = vocabularyOf(tokens);
  std::optional<int32_t> bos =
      specialId(root, "bos_token_id", vocabulary.size());
  std::optional<int32_t> eos =
      specialId(root, "eos_token_id", vocabulary.size());
  Json document = {
      {"pre_tokenizer", splittingOf(*pre)},
      {"post_processor", postProcessingOf(root, pre->addBos, bos, eos)},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"},
        {"ignore_merges", pre->ignoreMerges},
        {"vocab", std::move(vocabulary)},
        {"merges", key(root, "merges").json()}}}};
  if (std::optional<JsonField> types = findKey(root, "token_type"))
    document["added_tokens"] = addedTokensOf(tokens, *types);

  auto tokenizer = std::make_unique<BpeTokenizer>(
      JsonField(document, "GGUF metadata as tokenizer.json"));
  tokenizer->setBosId(bos);
  tokenizer->setEosId(eos);
  return tokenizer;
}

} // namespace fsdpq::rt
