#include "runtime/data/PreTokenizer.h"

#include "runtime/data/ByteAlphabet.h"
#include "runtime/data/ComponentDepth.h"
#include "runtime/data/MetaspaceOptions.h"
#include "runtime/data/SplitPattern.h"
#include "runtime/data/Utf8.h"

namespace fsdpq::rt {

PreTokenizer::~PreTokenizer() = default;

namespace {

/// Replaces each piece by the spans that `find(text)` keeps of it.
template <typename Find>
void splitPieces(std::vector<TextPiece> &pieces, Find find) {
  std::vector<TextPiece> result;
  result.reserve(pieces.size());
  for (const TextPiece &piece : pieces)
    for (const TextSpan &span : find(piece.text))
      if (span.begin != span.end)
        result.push_back({piece.text.substr(span.begin, span.end - span.begin),
                          piece.atStart && span.begin == 0});
  pieces = std::move(result);
}

class PreTokenizerSequence : public PreTokenizer {
public:
  explicit PreTokenizerSequence(
      std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts(std::move(parts)) {}
  void apply(std::vector<TextPiece> &pieces) const override {
    for (const std::unique_ptr<PreTokenizer> &part : parts)
      part->apply(pieces);
  }

private:
  std::vector<std::unique_ptr<PreTokenizer>> parts;
};

/// Split and Whitespace: `invert` makes the text between matches the delimiter.
class PatternSplit : public PreTokenizer {
public:
  PatternSplit(SplitPattern pattern, SplitBehavior behavior, bool invert)
      : pattern(std::move(pattern)), behavior(behavior), invert(invert) {}
  void apply(std::vector<TextPiece> &pieces) const override {
    splitPieces(pieces, [this](std::string_view text) {
      std::vector<TextSpan> spans = pattern.find(text);
      if (invert)
        for (TextSpan &span : spans)
          span.isMatch = !span.isMatch;
      return applyBehavior(std::move(spans), behavior);
    });
  }

private:
  SplitPattern pattern;
  SplitBehavior behavior;
  bool invert;
};

/// Digits, Punctuation and WhitespaceSplit.
class CharacterSplit : public PreTokenizer {
public:
  CharacterSplit(bool (*isDelimiter)(char32_t), SplitBehavior behavior)
      : isDelimiter(isDelimiter), behavior(behavior) {}
  void apply(std::vector<TextPiece> &pieces) const override {
    splitPieces(pieces, [this](std::string_view text) {
      return applyBehavior(findCharacters(text, isDelimiter), behavior);
    });
  }

private:
  bool (*isDelimiter)(char32_t);
  SplitBehavior behavior;
};

class ByteLevel : public PreTokenizer {
public:
  ByteLevel(bool addPrefixSpace, bool useRegex)
      : addPrefixSpace(addPrefixSpace) {
    if (useRegex) // GPT-2's words
      words = SplitPattern::regex(
          R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|)"
          R"(\s+(?!\S)|\s+)");
  }
  void apply(std::vector<TextPiece> &pieces) const override {
    if (addPrefixSpace)
      for (TextPiece &piece : pieces)
        if (piece.text.front() != ' ')
          piece.text.insert(0, " ");
    if (words)
      splitPieces(pieces,
                  [this](std::string_view text) { return words->find(text); });
    for (TextPiece &piece : pieces)
      piece.text = toByteAlphabet(piece.text);
  }

private:
  bool addPrefixSpace;
  std::optional<SplitPattern> words;
};

class Metaspace : public PreTokenizer {
public:
  explicit Metaspace(MetaspaceOptions options) : options(options) {
    appendCodePoint(replacement, options.replacement);
  }
  void apply(std::vector<TextPiece> &pieces) const override {
    for (TextPiece &piece : pieces)
      markSpaces(piece);
    if (!options.split)
      return;
    splitPieces(pieces, [this](std::string_view text) {
      auto isReplacement = [this](char32_t codePoint) {
        return codePoint == options.replacement;
      };
      return applyBehavior(findCharacters(text, isReplacement),
                           SplitBehavior::MergedWithNext);
    });
  }

private:
  void markSpaces(TextPiece &piece) const {
    std::string marked;
    for (char byte : piece.text)
      if (byte == ' ')
        marked += replacement;
      else
        marked += byte;
    bool prepend =
        options.prepend == MetaspaceOptions::Prepend::Always ||
        (options.prepend == MetaspaceOptions::Prepend::First && piece.atStart);
    if (prepend && !marked.starts_with(replacement))
      marked.insert(0, replacement);
    piece.text = std::move(marked);
  }

  MetaspaceOptions options;
  std::string replacement;
};

std::unique_ptr<PreTokenizer> parse(const JsonField &field, int depth) {
  checkComponentDepth(field, depth);
  std::string type = field.at("type").string();
  if (type == "Sequence") {
    std::vector<std::unique_ptr<PreTokenizer>> parts;
    for (const JsonField &part : field.at("pretokenizers").elements())
      parts.push_back(parse(part, depth + 1));
    return std::make_unique<PreTokenizerSequence>(std::move(parts));
  }
  if (type == "Split")
    return std::make_unique<PatternSplit>(
        SplitPattern::parse(field.at("pattern")),
        parseSplitBehavior(field.at("behavior")),
        field.boolean("invert", false));
  if (type == "ByteLevel")
    return std::make_unique<ByteLevel>(field.at("add_prefix_space").boolean(),
                                       field.boolean("use_regex", true));
  if (type == "Metaspace")
    return std::make_unique<Metaspace>(parseMetaspaceOptions(field));
  if (type == "Digits")
    return std::make_unique<CharacterSplit>(
        isNumeric, field.at("individual_digits").boolean()
                       ? SplitBehavior::Isolated
                       : SplitBehavior::Contiguous);
  if (type == "Punctuation") {
    std::optional<JsonField> behavior = field.find("behavior");
    return std::make_unique<CharacterSplit>(
        isPunctuation,
        behavior ? parseSplitBehavior(*behavior) : SplitBehavior::Isolated);
  }
  if (type == "Whitespace")
    return std::make_unique<PatternSplit>(
        SplitPattern::regex(R"(\w+|[^\w\s]+)"), SplitBehavior::Removed, true);
  if (type == "WhitespaceSplit")
    return std::make_unique<CharacterSplit>(isWhitespace,
                                            SplitBehavior::Removed);
  field.failUnsupported("pre-tokenizer", type);
}

} // namespace

std::unique_ptr<PreTokenizer> parsePreTokenizer(const JsonField &field) {
  return field.isNull() ? nullptr : parse(field, 0);
}

} // namespace fsdpq::rt
