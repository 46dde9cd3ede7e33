#include "runtime/data/Normalizer.h"

#include "runtime/data/ByteAlphabet.h"
#include "runtime/data/ComponentDepth.h"
#include "runtime/data/SplitPattern.h"
#include "runtime/data/Utf8.h"
#include "runtime/support/Error.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

namespace fsdpq::rt {

Normalizer::~Normalizer() = default;

namespace {

class NormalizerSequence : public Normalizer {
public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> parts)
      : parts(std::move(parts)) {}
  void apply(std::string &text) const override {
    for (const std::unique_ptr<Normalizer> &part : parts)
      part->apply(text);
  }

private:
  std::vector<std::unique_ptr<Normalizer>> parts;
};

/// NFC, NFD, NFKC, NFKD.
class UnicodeForm : public Normalizer {
public:
  using Getter = const icu::Normalizer2 *(*)(UErrorCode &);
  explicit UnicodeForm(Getter getter) {
    UErrorCode status = U_ZERO_ERROR;
    form = getter(status);
    check(status);
  }
  void apply(std::string &text) const override {
    UErrorCode status = U_ZERO_ERROR;
    std::string result;
    icu::StringByteSink<std::string> sink(&result);
    form->normalizeUTF8(0, icu::StringPiece(text), sink, nullptr, status);
    check(status);
    text = std::move(result);
  }

private:
  static void check(UErrorCode status) {
    if (U_FAILURE(status))
      throw Error(2004, ExitCode::RunFailure,
                  std::string("Unicode normalisation failed (") +
                      u_errorName(status) + ")",
                  "ICU");
  }

  const icu::Normalizer2 *form;
};

/// Character by character, without regard to context (no final sigma).
class Lowercase : public Normalizer {
public:
  void apply(std::string &text) const override {
    std::string result;
    result.reserve(text.size());
    for (size_t offset = 0; offset < text.size();) {
      char32_t codePoint = nextCodePoint(text, offset);
      // The one character whose lower case is two: I with a dot above.
      if (codePoint == 0x130)
        result += "i\u0307";
      else
        appendCodePoint(result, u_tolower(codePoint));
    }
    text = std::move(result);
  }
};

class Strip : public Normalizer {
public:
  Strip(bool left, bool right) : left(left), right(right) {}
  void apply(std::string &text) const override {
    size_t begin = 0, end = text.size();
    for (size_t next = 0; left && begin < end; begin = next)
      if (!isWhitespace(nextCodePoint(text, next)))
        break;
    for (size_t previous = end; right && begin < end; end = previous)
      if (!isWhitespace(previousCodePoint(text, previous)))
        break;
    text = text.substr(begin, end - begin);
  }

private:
  bool left, right;
};

class StripAccents : public Normalizer {
public:
  void apply(std::string &text) const override {
    std::string result;
    result.reserve(text.size());
    for (size_t offset = 0; offset < text.size();) {
      char32_t codePoint = nextCodePoint(text, offset);
      if (!isMark(codePoint))
        appendCodePoint(result, codePoint);
    }
    text = std::move(result);
  }
};

class Replace : public Normalizer {
public:
  Replace(SplitPattern pattern, std::string content)
      : pattern(std::move(pattern)), content(std::move(content)) {}
  void apply(std::string &text) const override {
    text = pattern.replace(text, content);
  }

private:
  SplitPattern pattern;
  std::string content;
};

class Prepend : public Normalizer {
public:
  explicit Prepend(std::string prefix) : prefix(std::move(prefix)) {}
  void apply(std::string &text) const override {
    if (!text.empty())
      text.insert(0, prefix);
  }

private:
  std::string prefix;
};

class ByteLevelNormalizer : public Normalizer {
public:
  void apply(std::string &text) const override { text = toByteAlphabet(text); }
};

std::unique_ptr<Normalizer> parse(const JsonField &field, int depth) {
  checkComponentDepth(field, depth);
  std::string type = field.at("type").string();
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> parts;
    for (const JsonField &part : field.at("normalizers").elements())
      parts.push_back(parse(part, depth + 1));
    return std::make_unique<NormalizerSequence>(std::move(parts));
  }
  if (type == "NFC")
    return std::make_unique<UnicodeForm>(icu::Normalizer2::getNFCInstance);
  if (type == "NFD")
    return std::make_unique<UnicodeForm>(icu::Normalizer2::getNFDInstance);
  if (type == "NFKC")
    return std::make_unique<UnicodeForm>(icu::Normalizer2::getNFKCInstance);
  if (type == "NFKD")
    return std::make_unique<UnicodeForm>(icu::Normalizer2::getNFKDInstance);
  if (type == "Lowercase")
    return std::make_unique<Lowercase>();
  if (type == "Strip")
    return std::make_unique<Strip>(field.at("strip_left").boolean(),
                                   field.at("strip_right").boolean());
  if (type == "StripAccents")
    return std::make_unique<StripAccents>();
  if (type == "Replace")
    return std::make_unique<Replace>(SplitPattern::parse(field.at("pattern")),
                                     field.at("content").string());
  if (type == "Prepend")
    return std::make_unique<Prepend>(field.at("prepend").string());
  if (type == "ByteLevel")
    return std::make_unique<ByteLevelNormalizer>();
  field.failUnsupported("normalizer", type);
}

} // namespace

std::unique_ptr<Normalizer> parseNormalizer(const JsonField &field) {
  return field.isNull() ? nullptr : parse(field, 0);
}

} // namespace fsdpq::rt
