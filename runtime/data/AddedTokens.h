//===- AddedTokens.h - Tokens found before the model sees text --*- C++ -*-===//
//
// "added_tokens" of tokenizer.json. Where one stands in a text, the text is cut
// there and the token's id taken; the model never sees it. A token that is not
// `normalized` is looked for in the text as given, a `normalized` one in the
// text after the normalizer (and in its own normalised form).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/JsonField.h"
#include "runtime/data/Normalizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fsdpq::rt {

struct AddedToken {
  int32_t id;
  std::string content;
  /// The content as it stands in normalised text.
  std::string pattern;
  bool singleWord; // only where no word character touches it
  bool stripLeft;  // takes the white space before it
  bool stripRight; // and after it
  bool normalized;
  bool special; // left out of decoded text on request
};

AddedToken parseAddedToken(const JsonField &field,
                           const Normalizer *normalizer);

class AddedTokens {
public:
  /// A later token replaces an earlier one of the same id.
  void add(AddedToken token);
  /// To be called after the last add(). `field` is named in errors: 2003 when
  /// two tokens are looked for by the same text.
  void finish(const JsonField &field);

  const AddedToken *byId(int32_t id) const;
  const AddedToken *byContent(std::string_view content) const;
  int32_t largestId() const;

  /// A part of a text: a token, or the text between tokens.
  struct Segment {
    size_t begin, end;
    const AddedToken *token; // null for text
  };
  /// Finds the tokens that are, or are not, `normalized`; of those that begin
  /// at one place the longest wins.
  std::vector<Segment> split(std::string_view text, bool normalized) const;

private:
  /// A byte-wise prefix tree.
  class Tree {
  public:
    /// False when the text is in the tree already.
    bool insert(std::string_view text, int32_t id);
    struct Match {
      size_t length;
      int32_t id;
    };
    std::optional<Match> longestAt(std::string_view text, size_t offset) const;
    bool empty() const { return nodes.size() == 1; }

  private:
    struct Node {
      int32_t id = -1;
      std::unordered_map<unsigned char, uint32_t> children;
    };
    std::vector<Node> nodes = {Node()};
  };

  Segment widen(std::string_view text, size_t begin, size_t end,
                const AddedToken &token, size_t previousEnd) const;

  std::unordered_map<int32_t, AddedToken> tokens;
  std::unordered_map<std::string, int32_t> ids;
  Tree rawTree, normalizedTree;
};

} // namespace fsdpq::rt
