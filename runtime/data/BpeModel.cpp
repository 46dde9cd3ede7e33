#include "runtime/data/BpeModel.h"

#include "runtime/data/Utf8.h"
#include "runtime/support/Error.h"
#include "runtime/support/SplitMix.h"

#include <algorithm>
#include <cstdio>
#include <queue>

namespace fsdpq::rt {
namespace {

/// No vocabulary comes near; a file with larger ids is broken, and a table over
/// all ids must not take the machine's memory.
constexpr int32_t kLargestId = (1 << 24) - 1;

constexpr size_t kCachedWords = 1 << 16;
constexpr size_t kLongestCachedWord = 256;

uint64_t pairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
         static_cast<uint32_t>(right);
}

} // namespace

/// A doubly linked list inside an array. `next` of -1 ends it; a symbol that
/// was merged into its left neighbour has the id -1.
struct BpeModel::Symbol {
  int32_t id;
  int32_t previous, next;
};

size_t BpeModel::PairHash::operator()(uint64_t pair) const {
  return splitmix::mix(pair); // std::hash would keep the ids' regularity
}

BpeModel::BpeModel(const JsonField &field) {
  // Files from before the field existed hold BPE as well if they have merges.
  if (std::optional<JsonField> type = field.find("type"))
    if (type->string() != "BPE")
      type->failUnsupported("tokenizer model", type->string());
  if (std::optional<JsonField> dropout = field.find("dropout"))
    if (!dropout->json().is_number() || dropout->json().get<double>() != 0)
      dropout->failUnsupported("BPE option", "dropout");
  if (std::optional<JsonField> unknown = field.find("unk_token"))
    unknownToken = unknown->string();
  if (std::optional<JsonField> prefix = field.find("continuing_subword_prefix"))
    continuationPrefix = prefix->string();
  if (std::optional<JsonField> suffix = field.find("end_of_word_suffix"))
    endSuffix = suffix->string();
  fuseUnknown = field.boolean("fuse_unk", false);
  byteFallback = field.boolean("byte_fallback", false);
  ignoreMerges = field.boolean("ignore_merges", false);
  readVocabulary(field.at("vocab"));
  readMerges(field.at("merges"));
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    byteTokens[byte] = id(name).value_or(-1);
  }
}

void BpeModel::readVocabulary(const JsonField &field) {
  if (!field.json().is_object())
    field.fail(2001, "the vocabulary must be an object of token and id");
  vocabulary.reserve(field.json().size());
  tokens.reserve(field.json().size());
  for (const auto &[token, id] : field.json().items()) {
    // The common case first: a JsonField for each token would cost more than
    // all the rest.
    bool plain = id.is_number_unsigned() && id.get<uint64_t>() <= kLargestId;
    auto value = static_cast<int32_t>(
        plain ? id.get<int64_t>() : field.at(token).integer(0, kLargestId));
    auto entry = vocabulary.emplace(token, value).first;
    auto [other, isNew] = tokens.emplace(value, &entry->first);
    if (!isNew)
      field.fail(2003, "the tokens '" + *other->second + "' and '" + token +
                           "' share the id " + std::to_string(value));
    largest = std::max(largest, value);
  }
}

void BpeModel::readMerges(const JsonField &field) {
  if (!field.json().is_array())
    field.fail(2001, "the merges must be an array");
  merges.reserve(field.json().size());
  uint32_t rank = 0;
  for (size_t index = 0; index < field.json().size(); ++index) {
    auto refuse = [&](int id, const std::string &what) {
      field.fail(id, "merge " + std::to_string(index) + " " + what);
    };
    // Either "left right" or ["left", "right"]; only the second can express a
    // token that holds a space.
    const nlohmann::json &merge = field.json()[index];
    std::string left, right;
    if (merge.is_string()) {
      const auto &text = merge.get_ref<const std::string &>();
      if (text.starts_with("#version"))
        continue;
      size_t space = text.find(' ');
      if (space == std::string::npos ||
          text.find(' ', space + 1) != std::string::npos)
        refuse(2001, "is not two tokens with a space between: '" + text + "'");
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      refuse(2001, "is neither a string nor a pair of strings");
    }
    if (right.size() < continuationPrefix.size())
      refuse(2003, "has a right part shorter than the continuation prefix");

    auto require = [&](const std::string &token) {
      std::optional<int32_t> known = id(token);
      if (!known)
        refuse(2003, "names '" + token + "', which is not in the vocabulary");
      return *known;
    };
    int32_t leftId = require(left), rightId = require(right);
    int32_t result = require(left + right.substr(continuationPrefix.size()));
    merges[pairKey(leftId, rightId)] = {rank++, result};
  }
}

std::optional<int32_t> BpeModel::id(std::string_view token) const {
  auto found = vocabulary.find(token);
  if (found == vocabulary.end())
    return std::nullopt;
  return found->second;
}

const std::string *BpeModel::token(int32_t id) const {
  auto found = tokens.find(id);
  return found == tokens.end() ? nullptr : found->second;
}

const BpeModel::Merge *BpeModel::findMerge(int32_t left, int32_t right) const {
  auto found = merges.find(pairKey(left, right));
  return found == merges.end() ? nullptr : &found->second;
}

void BpeModel::encode(std::string_view word, std::vector<int32_t> &ids) const {
  if (word.empty())
    return;
  if (ignoreMerges)
    if (std::optional<int32_t> whole = id(word)) {
      ids.push_back(*whole);
      return;
    }
  if (word.size() > kLongestCachedWord) {
    std::vector<int32_t> encoded = encodeUncached(word);
    ids.insert(ids.end(), encoded.begin(), encoded.end());
    return;
  }
  {
    std::lock_guard lock(cache->mutex);
    if (auto found = cache->words.find(word); found != cache->words.end()) {
      ids.insert(ids.end(), found->second.begin(), found->second.end());
      return;
    }
  }
  std::vector<int32_t> encoded = encodeUncached(word);
  ids.insert(ids.end(), encoded.begin(), encoded.end());
  std::lock_guard lock(cache->mutex);
  if (cache->words.size() < kCachedWords)
    cache->words.emplace(word, std::move(encoded));
}

std::vector<int32_t> BpeModel::encodeUncached(std::string_view word) const {
  std::vector<Symbol> symbols = initialSymbols(word);
  mergeSymbols(symbols);
  std::vector<int32_t> ids;
  for (const Symbol &symbol : symbols)
    if (symbol.id >= 0)
      ids.push_back(symbol.id);
  return ids;
}

std::vector<BpeModel::Symbol>
BpeModel::initialSymbols(std::string_view word) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  // An unknown token waits here for more unknown characters to fuse with. Byte
  // tokens in between go ahead of it, as in the reference.
  bool unknownWaits = false;
  int32_t unknownId = -1;
  auto flushUnknown = [&] {
    if (unknownWaits)
      symbols.push_back({unknownId, 0, 0});
    unknownWaits = false;
  };
  for (size_t offset = 0; offset < word.size();) {
    size_t begin = offset;
    nextCodePoint(word, offset);
    std::string affixed;
    std::string_view character = word.substr(begin, offset - begin);
    bool isFirst = begin == 0, isLast = offset == word.size();
    if ((!isFirst && !continuationPrefix.empty()) ||
        (isLast && !endSuffix.empty())) {
      affixed = (isFirst ? "" : continuationPrefix) + std::string(character) +
                (isLast ? endSuffix : "");
      character = affixed;
    }
    if (std::optional<int32_t> known = id(character)) {
      flushUnknown();
      symbols.push_back({*known, 0, 0});
      continue;
    }
    if (byteFallback && appendBytes(character, symbols))
      continue;
    if (!unknownToken)
      continue;
    if (!fuseUnknown)
      flushUnknown();
    if (!unknownWaits) {
      std::optional<int32_t> known = id(*unknownToken);
      if (!known)
        throw Error(2003, ExitCode::BadInput,
                    "the text holds '" + std::string(character) +
                        "', which the vocabulary cannot express, and its "
                        "unknown token '" +
                        *unknownToken + "' is not in the vocabulary either",
                    "tokenizer model", "remove such characters from the text");
      unknownId = *known;
      unknownWaits = true;
    }
  }
  flushUnknown();
  auto count = static_cast<int32_t>(symbols.size());
  for (int32_t index = 0; index < count; ++index) {
    symbols[index].previous = index - 1;
    symbols[index].next = index + 1 < count ? index + 1 : -1;
  }
  return symbols;
}

bool BpeModel::appendBytes(std::string_view text,
                           std::vector<Symbol> &symbols) const {
  for (unsigned char byte : text)
    if (byteTokens[byte] < 0)
      return false;
  for (unsigned char byte : text)
    symbols.push_back({byteTokens[byte], 0, 0});
  return true;
}

void BpeModel::mergeSymbols(std::vector<Symbol> &symbols) const {
  struct Candidate {
    uint32_t rank;
    int32_t position, result;
    bool operator>(const Candidate &other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  auto consider = [&](int32_t position) {
    if (position < 0 || symbols[position].next < 0)
      return;
    if (const Merge *merge =
            findMerge(symbols[position].id, symbols[symbols[position].next].id))
      queue.push({merge->rank, position, merge->result});
  };
  for (size_t index = 0; index < symbols.size(); ++index)
    consider(static_cast<int32_t>(index));

  while (!queue.empty()) {
    Candidate top = queue.top();
    queue.pop();
    Symbol &left = symbols[top.position];
    if (left.id < 0 || left.next < 0)
      continue;
    Symbol &right = symbols[left.next];
    // One of the two may have changed since the candidate was queued.
    const Merge *merge = findMerge(left.id, right.id);
    if (!merge || merge->result != top.result)
      continue;
    left.id = merge->result;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0)
      symbols[left.next].previous = top.position;
    consider(left.previous);
    consider(top.position);
  }
}

} // namespace fsdpq::rt
