//===- Tokenizer.h - Text to token ids and back -----------------*- C++ -*-===//
//
// Two sources describe a tokenizer: tokenizer.json, as the `tokenizers` library
// of Hugging Face writes it, and the tokenizer.ggml.* keys of a GGUF file. Both
// give a byte-pair encoding; ids are those of the reference library, exactly.
//
// Errors (exit code BadInput):
//   2001  a file or field is malformed or missing
//   2002  a component, option or pre-tokenizer that is not implemented
//   2003  vocabulary, merges and ids contradict each other
//   2004  a pattern cannot be compiled, or gives up on a text
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// All functions may be called from several threads at once.
class Tokenizer {
public:
  virtual ~Tokenizer();

  /// Ill-formed UTF-8 is read as U+FFFD. `addSpecialTokens` applies the
  /// post-processor (a BOS, where the tokenizer has one); tokens written out in
  /// the text, such as "</s>", are recognised either way.
  virtual std::vector<int32_t> encode(std::string_view utf8,
                                      bool addSpecialTokens) const = 0;

  /// Ids that name no token are left out, special tokens too if asked.
  virtual std::string decode(const std::vector<int32_t> &ids,
                             bool skipSpecialTokens) const = 0;

  /// One more than the largest id; the rows an embedding needs at least.
  virtual int32_t vocabularySize() const = 0;

  /// The id of a token by its content (not by its text: "Ġthe", not " the").
  virtual std::optional<int32_t> tokenId(std::string_view token) const = 0;

  /// What the tokenizer's configuration names; none if it names none.
  virtual std::optional<int32_t> bosId() const = 0;
  virtual std::optional<int32_t> eosId() const = 0;
};

/// Reads tokenizer.json, and BOS and EOS from tokenizer_config.json (or else
/// special_tokens_map.json) in the same folder. Truncation and padding stored
/// in the file are ignored: they belong to whoever makes batches.
std::unique_ptr<Tokenizer>
loadTokenizerJson(const std::string &tokenizerJsonPath);

/// Reads the keys tokenizer.ggml.* of a GGUF file's metadata, an object of key
/// and value with arrays as JSON arrays. Model "gpt2" (byte-level BPE) only.
std::unique_ptr<Tokenizer> loadTokenizerGguf(const nlohmann::json &metadata);

} // namespace fsdpq::rt
