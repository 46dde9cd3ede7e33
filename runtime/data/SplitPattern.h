//===- SplitPattern.h - Where a pattern cuts a text -------------*- C++ -*-===//
#pragma once

#include "runtime/data/JsonField.h"
#include "runtime/data/Utf8.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// A part of a text, in bytes, that a pattern matched or left between matches.
struct TextSpan {
  size_t begin, end;
  bool isMatch;
};

/// A literal string or a regular expression.
class SplitPattern {
public:
  /// {"String": s} or {"Regex": r}, r in Oniguruma's syntax as far as it agrees
  /// with ICU's. Throws Error 2004 for an expression that cannot be compiled.
  static SplitPattern parse(const JsonField &field);
  /// A literal. Throws Error 2002 for an empty one.
  static SplitPattern text(const JsonField &field);
  /// An expression in ICU's syntax.
  static SplitPattern regex(const std::string &expression);

  /// Covers `text` (well-formed UTF-8) from end to end, in order, by
  /// neighbouring spans; empty matches count. Throws Error 2004 when matching
  /// takes unreasonable time or memory.
  std::vector<TextSpan> find(std::string_view text) const;

  /// `text` with every match replaced by `content`, taken literally.
  std::string replace(std::string_view text, const std::string &content) const;

private:
  struct Regex;
  std::vector<TextSpan> findLiteral(std::string_view text) const;
  std::vector<TextSpan> findRegex(std::string_view text) const;

  std::string literal;
  std::shared_ptr<const Regex> compiled;
};

/// Covers `text`; the characters that satisfy `predicate` are matches of one
/// character each.
template <typename Predicate>
std::vector<TextSpan> findCharacters(std::string_view text,
                                     Predicate predicate) {
  std::vector<TextSpan> spans;
  size_t last = 0;
  for (size_t offset = 0; offset < text.size();) {
    size_t begin = offset;
    if (!predicate(nextCodePoint(text, offset)))
      continue;
    if (last < begin)
      spans.push_back({last, begin, false});
    spans.push_back({begin, offset, true});
    last = offset;
  }
  if (last < text.size())
    spans.push_back({last, text.size(), false});
  return spans;
}

/// What becomes of the matches, the delimiters: with "-" and "a--b",
/// Removed gives a b, Isolated a - - b, MergedWithPrevious a- - b,
/// MergedWithNext a - -b, Contiguous a -- b.
enum class SplitBehavior {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous
};

SplitBehavior parseSplitBehavior(const JsonField &field);

/// The spans to keep; `isMatch` has no meaning in the result.
std::vector<TextSpan> applyBehavior(std::vector<TextSpan> spans,
                                    SplitBehavior behavior);

} // namespace fsdpq::rt
