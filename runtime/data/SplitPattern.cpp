#include "runtime/data/SplitPattern.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <unicode/regex.h>
#include <unicode/unistr.h>

namespace fsdpq::rt {

/// The reference compiles patterns with Oniguruma, where ^ and $ stand at every
/// line feed and the dot excludes only that; hence the flags.
struct SplitPattern::Regex {
  std::unique_ptr<icu::RegexPattern> pattern;
  std::string expression;
};

namespace {

/// The backtracking stack of one match. ICU's default of 8 MB is too small for
/// a run of some 100,000 equal characters; without any limit a hostile text
/// could take all memory.
constexpr int32_t kStackBytes = 1 << 30;
/// How long matching may take, in ICU's units of 10,000 saved states: far more
/// than honest patterns need, yet one of exponential cost ends after seconds.
int32_t timeLimit(size_t bytes) {
  return 10'000 + static_cast<int32_t>(bytes / 100);
}

Error regexError(const std::string &what, const std::string &expression,
                 UErrorCode status) {
  return Error(2004, ExitCode::BadInput,
               what + " (" + u_errorName(status) + ")",
               "regular expression " + expression,
               "split the text into shorter records, or pre-tokenise it");
}

/// Oniguruma's character classes where ICU's of the same name differ: \w has
/// all numbers but not the joiners U+200C and U+200D, \h is a hexadecimal
/// digit.
std::string translateClasses(const std::string &expression) {
  std::string result;
  for (size_t index = 0; index < expression.size(); ++index) {
    if (expression[index] != '\\' || index + 1 == expression.size()) {
      result += expression[index];
      continue;
    }
    switch (char escaped = expression[++index]) {
    case 'w':
      result += R"([\p{Alphabetic}\p{M}\p{N}\p{Pc}])";
      break;
    case 'W':
      result += R"([^\p{Alphabetic}\p{M}\p{N}\p{Pc}])";
      break;
    case 'h':
      result += "[0-9a-fA-F]";
      break;
    case 'H':
      result += "[^0-9a-fA-F]";
      break;
    default:
      result += {'\\', escaped};
    }
  }
  return result;
}

} // namespace

SplitPattern SplitPattern::parse(const JsonField &field) {
  if (std::optional<JsonField> literal = field.find("String"))
    return text(*literal);
  return regex(translateClasses(field.at("Regex").string()));
}

SplitPattern SplitPattern::text(const JsonField &field) {
  SplitPattern result;
  result.literal = field.string();
  if (result.literal.empty())
    field.fail(2002, "an empty pattern is not implemented");
  return result;
}

SplitPattern SplitPattern::regex(const std::string &expression) {
  UErrorCode status = U_ZERO_ERROR;
  UParseError place;
  auto compiled = std::make_shared<Regex>();
  compiled->pattern.reset(icu::RegexPattern::compile(
      icu::UnicodeString::fromUTF8(expression),
      UREGEX_MULTILINE | UREGEX_UNIX_LINES, place, status));
  if (U_FAILURE(status))
    throw Error(2004, ExitCode::BadInput,
                std::string("the regular expression cannot be compiled (") +
                    u_errorName(status) + " at character " +
                    std::to_string(place.offset) + ")",
                expression);
  compiled->expression = expression;
  SplitPattern result;
  result.compiled = std::move(compiled);
  return result;
}

std::vector<TextSpan> SplitPattern::find(std::string_view text) const {
  return compiled ? findRegex(text) : findLiteral(text);
}

std::string SplitPattern::replace(std::string_view text,
                                  const std::string &content) const {
  std::string result;
  result.reserve(text.size());
  for (const TextSpan &span : find(text))
    result += span.isMatch ? std::string_view(content)
                           : text.substr(span.begin, span.end - span.begin);
  return result;
}

std::vector<TextSpan> SplitPattern::findLiteral(std::string_view text) const {
  std::vector<TextSpan> spans;
  size_t last = 0;
  for (size_t begin = text.find(literal); begin != std::string_view::npos;
       begin = text.find(literal, last)) {
    if (last < begin)
      spans.push_back({last, begin, false});
    last = begin + literal.size();
    spans.push_back({begin, last, true});
  }
  if (last < text.size())
    spans.push_back({last, text.size(), false});
  return spans;
}

std::vector<TextSpan> SplitPattern::findRegex(std::string_view text) const {
  std::vector<TextSpan> spans;
  if (text.empty())
    return spans;
  icu::UnicodeString wide = icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::RegexMatcher> matcher(
      compiled->pattern->matcher(wide, status));
  if (U_SUCCESS(status)) {
    matcher->setStackLimit(kStackBytes, status);
    matcher->setTimeLimit(timeLimit(text.size()), status);
  }

  // ICU counts UTF-16 units; matches come in order, so one walk over the text
  // turns them into bytes.
  int32_t units = 0;
  size_t bytes = 0;
  auto byteOffset = [&](int32_t unit) {
    while (units < unit)
      units += nextCodePoint(text, bytes) > 0xFFFF ? 2 : 1;
    return bytes;
  };

  size_t last = 0;
  while (U_SUCCESS(status) && matcher->find(status)) {
    size_t begin = byteOffset(matcher->start(status));
    size_t end = byteOffset(matcher->end(status));
    // An empty match at the end of another counts as part of that one.
    if (begin == end && begin == last && !spans.empty())
      continue;
    if (last < begin)
      spans.push_back({last, begin, false});
    spans.push_back({begin, end, true});
    last = end;
  }
  if (U_FAILURE(status))
    throw regexError("splitting a text of " + std::to_string(text.size()) +
                         " bytes failed",
                     compiled->expression, status);
  if (last < text.size())
    spans.push_back({last, text.size(), false});
  return spans;
}

SplitBehavior parseSplitBehavior(const JsonField &field) {
  std::string name = field.string();
  if (name == "Removed")
    return SplitBehavior::Removed;
  if (name == "Isolated")
    return SplitBehavior::Isolated;
  if (name == "MergedWithPrevious")
    return SplitBehavior::MergedWithPrevious;
  if (name == "MergedWithNext")
    return SplitBehavior::MergedWithNext;
  if (name == "Contiguous")
    return SplitBehavior::Contiguous;
  field.failUnsupported("split behavior", name);
}

/// Joins neighbours: a match joins the span before it unless that one ended in
/// a match itself. For MergedWithNext the spans come in reverse.
static std::vector<TextSpan> mergeMatches(const std::vector<TextSpan> &spans) {
  std::vector<TextSpan> result;
  bool previousIsMatch = false;
  for (const TextSpan &span : spans) {
    if (span.isMatch && !previousIsMatch && !result.empty()) {
      result.back().begin = std::min(result.back().begin, span.begin);
      result.back().end = std::max(result.back().end, span.end);
    } else {
      result.push_back(span);
    }
    previousIsMatch = span.isMatch;
  }
  return result;
}

static std::vector<TextSpan>
mergeEqualNeighbours(const std::vector<TextSpan> &spans) {
  std::vector<TextSpan> result;
  for (const TextSpan &span : spans)
    if (!result.empty() && result.back().isMatch == span.isMatch)
      result.back().end = span.end;
    else
      result.push_back(span);
  return result;
}

std::vector<TextSpan> applyBehavior(std::vector<TextSpan> spans,
                                    SplitBehavior behavior) {
  switch (behavior) {
  case SplitBehavior::Removed:
    std::erase_if(spans, [](const TextSpan &span) { return span.isMatch; });
    return spans;
  case SplitBehavior::Isolated:
    return spans;
  case SplitBehavior::MergedWithPrevious:
    return mergeMatches(spans);
  case SplitBehavior::MergedWithNext:
    std::reverse(spans.begin(), spans.end());
    spans = mergeMatches(spans);
    std::reverse(spans.begin(), spans.end());
    return spans;
  case SplitBehavior::Contiguous:
    return mergeEqualNeighbours(spans);
  }
  return spans;
}

} // namespace fsdpq::rt
