#include "runtime/data/TokenDecoder.h"

#include "runtime/data/ByteAlphabet.h"
#include "runtime/data/ComponentDepth.h"
#include "runtime/data/MetaspaceOptions.h"
#include "runtime/data/SplitPattern.h"
#include "runtime/data/Utf8.h"

#include <charconv>

namespace fsdpq::rt {

TokenDecoder::~TokenDecoder() = default;

namespace {

std::string join(const std::vector<std::string> &tokens) {
  std::string result;
  for (const std::string &token : tokens)
    result += token;
  return result;
}

class DecoderSequence : public TokenDecoder {
public:
  explicit DecoderSequence(std::vector<std::unique_ptr<TokenDecoder>> parts)
      : parts(std::move(parts)) {}
  void apply(std::vector<std::string> &tokens) const override {
    for (const std::unique_ptr<TokenDecoder> &part : parts)
      part->apply(tokens);
  }

private:
  std::vector<std::unique_ptr<TokenDecoder>> parts;
};

class ReplaceDecoder : public TokenDecoder {
public:
  ReplaceDecoder(SplitPattern pattern, std::string content)
      : pattern(std::move(pattern)), content(std::move(content)) {}
  void apply(std::vector<std::string> &tokens) const override {
    for (std::string &token : tokens)
      token = pattern.replace(token, content);
  }

private:
  SplitPattern pattern;
  std::string content;
};

/// Runs of tokens <0xNN> become the text of those bytes; a run that is not
/// UTF-8 becomes one U+FFFD a byte.
class ByteFallbackDecoder : public TokenDecoder {
public:
  void apply(std::vector<std::string> &tokens) const override {
    std::vector<std::string> result;
    std::string run;
    auto endRun = [&] {
      if (run.empty())
        return;
      if (isValidUtf8(run))
        result.push_back(run);
      else
        result.insert(result.end(), run.size(), "\uFFFD");
      run.clear();
    };
    for (std::string &token : tokens) {
      unsigned char byte;
      if (parseByte(token, byte)) {
        run += static_cast<char>(byte);
        continue;
      }
      endRun();
      result.push_back(std::move(token));
    }
    endRun();
    tokens = std::move(result);
  }

private:
  static bool parseByte(std::string_view token, unsigned char &byte) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>')
      return false;
    const char *end = token.data() + 5;
    auto [stop, error] = std::from_chars(token.data() + 3, end, byte, 16);
    return error == std::errc() && stop == end;
  }
};

class FuseDecoder : public TokenDecoder {
public:
  void apply(std::vector<std::string> &tokens) const override {
    tokens = {join(tokens)};
  }
};

/// Takes up to `start` times `content` from the front of every token and up to
/// `stop` times from its end.
class StripDecoder : public TokenDecoder {
public:
  StripDecoder(char32_t content, int64_t start, int64_t stop)
      : start(start), stop(stop) {
    appendCodePoint(this->content, content);
  }
  void apply(std::vector<std::string> &tokens) const override {
    for (std::string &token : tokens) {
      std::string_view rest = token;
      for (int64_t n = 0; n < start && rest.starts_with(content); ++n)
        rest.remove_prefix(content.size());
      for (int64_t n = 0; n < stop && rest.ends_with(content); ++n)
        rest.remove_suffix(content.size());
      token = std::string(rest);
    }
  }

private:
  std::string content;
  int64_t start, stop;
};

/// Characters of several bytes may lie across tokens, so the bytes of all of
/// them are joined first.
class ByteLevelDecoder : public TokenDecoder {
public:
  void apply(std::vector<std::string> &tokens) const override {
    std::string bytes;
    for (const std::string &token : tokens)
      appendFromByteAlphabet(bytes, token);
    tokens = {repairUtf8(bytes)};
  }
};

class MetaspaceDecoder : public TokenDecoder {
public:
  explicit MetaspaceDecoder(MetaspaceOptions options) : options(options) {}
  void apply(std::vector<std::string> &tokens) const override {
    for (size_t index = 0; index < tokens.size(); ++index) {
      // The marks of the first token are taken for the ones put there.
      bool drop =
          index == 0 && options.prepend != MetaspaceOptions::Prepend::Never;
      std::string text;
      for (size_t offset = 0; offset < tokens[index].size();) {
        char32_t codePoint = nextCodePoint(tokens[index], offset);
        if (codePoint != options.replacement)
          appendCodePoint(text, codePoint);
        else if (!drop)
          text += ' ';
      }
      tokens[index] = std::move(text);
    }
  }

private:
  MetaspaceOptions options;
};

/// Words end in `suffix`, which becomes a space save in the last token.
class BpeDecoder : public TokenDecoder {
public:
  explicit BpeDecoder(SplitPattern suffix) : suffix(std::move(suffix)) {}
  void apply(std::vector<std::string> &tokens) const override {
    for (size_t index = 0; index < tokens.size(); ++index)
      tokens[index] =
          suffix.replace(tokens[index], index + 1 == tokens.size() ? "" : " ");
  }

private:
  SplitPattern suffix;
};

std::unique_ptr<TokenDecoder> parse(const JsonField &field, int depth) {
  checkComponentDepth(field, depth);
  std::string type = field.at("type").string();
  if (type == "Sequence") {
    std::vector<std::unique_ptr<TokenDecoder>> parts;
    for (const JsonField &part : field.at("decoders").elements())
      parts.push_back(parse(part, depth + 1));
    return std::make_unique<DecoderSequence>(std::move(parts));
  }
  if (type == "Replace")
    return std::make_unique<ReplaceDecoder>(
        SplitPattern::parse(field.at("pattern")), field.at("content").string());
  if (type == "ByteFallback")
    return std::make_unique<ByteFallbackDecoder>();
  if (type == "Fuse")
    return std::make_unique<FuseDecoder>();
  if (type == "Strip")
    return std::make_unique<StripDecoder>(
        field.at("content").character(),
        field.at("start").integer(0, INT32_MAX),
        field.at("stop").integer(0, INT32_MAX));
  if (type == "ByteLevel")
    return std::make_unique<ByteLevelDecoder>();
  if (type == "Metaspace")
    return std::make_unique<MetaspaceDecoder>(parseMetaspaceOptions(field));
  if (type == "BPEDecoder")
    return std::make_unique<BpeDecoder>(SplitPattern::text(field.at("suffix")));
  field.failUnsupported("decoder", type);
}

} // namespace

std::unique_ptr<TokenDecoder> parseTokenDecoder(const JsonField &field) {
  return field.isNull() ? nullptr : parse(field, 0);
}

} // namespace fsdpq::rt
