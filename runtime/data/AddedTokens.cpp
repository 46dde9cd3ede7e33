#include "runtime/data/AddedTokens.h"

#include "runtime/data/Utf8.h"

#include <algorithm>

namespace fsdpq::rt {

AddedToken parseAddedToken(const JsonField &field,
                           const Normalizer *normalizer) {
  AddedToken token;
  token.id = static_cast<int32_t>(field.at("id").integer(0, INT32_MAX));
  token.content = field.at("content").string();
  token.singleWord = field.boolean("single_word", false);
  token.stripLeft = field.boolean("lstrip", false);
  token.stripRight = field.boolean("rstrip", false);
  token.special = field.boolean("special", false);
  token.normalized = field.boolean("normalized", !token.special);
  if (token.content.empty())
    field.fail(2001, "an added token has no content");
  token.pattern = token.content;
  if (token.normalized && normalizer)
    normalizer->apply(token.pattern);
  return token;
}

void AddedTokens::add(AddedToken token) {
  ids[token.content] = token.id;
  tokens[token.id] = std::move(token);
}

void AddedTokens::finish(const JsonField &field) {
  for (const auto &[id, token] : tokens) {
    if (token.pattern.empty()) // nothing is left to look for
      continue;
    Tree &tree = token.normalized ? normalizedTree : rawTree;
    if (!tree.insert(token.pattern, id))
      field.fail(2003, "two added tokens are looked for by the text '" +
                           token.pattern + "'");
  }
}

const AddedToken *AddedTokens::byId(int32_t id) const {
  auto found = tokens.find(id);
  return found == tokens.end() ? nullptr : &found->second;
}

const AddedToken *AddedTokens::byContent(std::string_view content) const {
  auto found = ids.find(std::string(content));
  return found == ids.end() ? nullptr : byId(found->second);
}

int32_t AddedTokens::largestId() const {
  int32_t largest = -1;
  for (const auto &[id, token] : tokens)
    largest = std::max(largest, id);
  return largest;
}

std::vector<AddedTokens::Segment> AddedTokens::split(std::string_view text,
                                                     bool normalized) const {
  const Tree &tree = normalized ? normalizedTree : rawTree;
  std::vector<Segment> segments;
  size_t done = 0;
  // A rejected match is passed over whole, and the search goes on after the
  // match itself, not after the space it stripped: both as in the reference.
  for (size_t offset = 0; !tree.empty() && offset < text.size();) {
    std::optional<Tree::Match> match = tree.longestAt(text, offset);
    if (!match) {
      ++offset;
      continue;
    }
    size_t begin = offset, end = offset + match->length;
    offset = end;
    const AddedToken &token = tokens.at(match->id);
    if (token.singleWord) {
      size_t before = begin, after = end;
      if ((begin > 0 && isWord(previousCodePoint(text, before))) ||
          (end < text.size() && isWord(nextCodePoint(text, after))))
        continue;
    }
    Segment segment = widen(text, begin, end, token, done);
    if (done < segment.begin)
      segments.push_back({done, segment.begin, nullptr});
    // A token may lie inside the space that the one before it took.
    if (segment.begin < segment.end)
      segments.push_back(segment);
    done = segment.end;
  }
  if (done < text.size())
    segments.push_back({done, text.size(), nullptr});
  return segments;
}

AddedTokens::Segment AddedTokens::widen(std::string_view text, size_t begin,
                                        size_t end, const AddedToken &token,
                                        size_t previousEnd) const {
  if (token.stripLeft) {
    for (size_t before = begin; before > 0; begin = before)
      if (!isWhitespace(previousCodePoint(text, before)))
        break;
    begin = std::max(begin, previousEnd);
  }
  if (token.stripRight)
    for (size_t after = end; after < text.size(); end = after)
      if (!isWhitespace(nextCodePoint(text, after)))
        break;
  return {begin, end, &token};
}

bool AddedTokens::Tree::insert(std::string_view text, int32_t id) {
  uint32_t node = 0;
  for (unsigned char byte : text) {
    auto [child, isNew] = nodes[node].children.try_emplace(
        byte, static_cast<uint32_t>(nodes.size()));
    node = child->second;
    if (isNew)
      nodes.emplace_back();
  }
  if (nodes[node].id >= 0)
    return false;
  nodes[node].id = id;
  return true;
}

std::optional<AddedTokens::Tree::Match>
AddedTokens::Tree::longestAt(std::string_view text, size_t offset) const {
  std::optional<Match> match;
  uint32_t node = 0;
  for (size_t end = offset; end < text.size();) {
    const Node &from = nodes[node];
    auto child = from.children.find(static_cast<unsigned char>(text[end]));
    if (child == from.children.end())
      break;
    node = child->second;
    ++end;
    if (nodes[node].id >= 0)
      match = Match{end - offset, nodes[node].id};
  }
  return match;
}

} // namespace fsdpq::rt
