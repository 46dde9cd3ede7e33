//===- BpeModel.h - Byte-pair encoding of one word --------------*- C++ -*-===//
#pragma once

#include "runtime/data/JsonField.h"

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fsdpq::rt {

/// A word starts as its characters and neighbours are merged, the pair of the
/// lowest rank first and from the left among equals, until no pair of the table
/// is left. Time is O(n log n) in the word's length.
class BpeModel {
public:
  /// Reads "model" of tokenizer.json. Errors 2001 to 2003.
  explicit BpeModel(const JsonField &field);

  /// Appends the ids of `word`. Characters that the vocabulary cannot express
  /// and that have neither byte tokens nor an unknown token are left out.
  void encode(std::string_view word, std::vector<int32_t> &ids) const;

  std::optional<int32_t> id(std::string_view token) const;
  const std::string *token(int32_t id) const;
  size_t size() const { return vocabulary.size(); }
  int32_t largestId() const { return largest; }

private:
  struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  template <typename Value>
  using StringMap =
      std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

  struct PairHash {
    size_t operator()(uint64_t pair) const;
  };
  struct Merge {
    uint32_t rank;
    int32_t result;
  };
  struct Symbol;

  void readVocabulary(const JsonField &field);
  void readMerges(const JsonField &field);
  const Merge *findMerge(int32_t left, int32_t right) const;

  std::vector<int32_t> encodeUncached(std::string_view word) const;
  std::vector<Symbol> initialSymbols(std::string_view word) const;
  bool appendBytes(std::string_view text, std::vector<Symbol> &symbols) const;
  void mergeSymbols(std::vector<Symbol> &symbols) const;

  StringMap<int32_t> vocabulary;
  std::unordered_map<int32_t, const std::string *> tokens; // keys of vocabulary
  std::unordered_map<uint64_t, Merge, PairHash> merges;
  int32_t largest = -1;

  std::optional<std::string> unknownToken;
  std::string continuationPrefix; // of symbols that do not start the word
  std::string endSuffix;          // of the symbol that ends the word
  bool fuseUnknown, byteFallback, ignoreMerges;
  std::array<int32_t, 256> byteTokens; // ids of <0x00> to <0xFF>, or -1

  /// Words met before. Text repeats its words, merging costs far more than
  /// looking up.
  struct Cache {
    std::mutex mutex;
    StringMap<std::vector<int32_t>> words;
  };
  std::unique_ptr<Cache> cache = std::make_unique<Cache>();
};

} // namespace fsdpq::rt
