#include "runtime/data/BpeTokenizer.h"

#include "runtime/data/Utf8.h"
#include "runtime/support/Error.h"

#include <algorithm>

namespace fsdpq::rt {

/// ICU and the symbol list count in 32 bits.
static constexpr size_t kLongestText = size_t(1) << 30;

/// A missing component is as good as null.
static JsonField component(const JsonField &root, const std::string &key) {
  static const nlohmann::json none;
  std::optional<JsonField> found = root.find(key);
  return found ? *found : JsonField(none, key);
}

BpeTokenizer::BpeTokenizer(const JsonField &root)
    : model(root.at("model")),
      normalizer(parseNormalizer(component(root, "normalizer"))),
      preTokenizer(parsePreTokenizer(component(root, "pre_tokenizer"))),
      postProcessor(PostProcessor::parse(component(root, "post_processor"))),
      decoder(parseTokenDecoder(component(root, "decoder"))) {
  if (std::optional<JsonField> added = root.find("added_tokens"))
    readAddedTokens(*added);
  for (int32_t id : postProcessor.specialIds())
    if (!addedTokens.byId(id) && !model.token(id))
      root.fail(2003, "the post-processor adds the id " + std::to_string(id) +
                          ", which names no token");
}

void BpeTokenizer::readAddedTokens(const JsonField &field) {
  // A token of the model's vocabulary keeps its id there; the others are
  // numbered on from its size, whatever the file says. The file should say the
  // same: if not, no one can tell which of the two a model was trained with.
  int64_t nextId = static_cast<int64_t>(model.size());
  for (const JsonField &element : field.elements()) {
    AddedToken token = parseAddedToken(element, normalizer.get());
    std::optional<int32_t> known = tokenId(token.content);
    int64_t expected = known ? *known : nextId++;
    if (token.id != expected)
      element.fail(2003,
                   "the added token '" + token.content + "' has the id " +
                       std::to_string(token.id) + ", but by its place it is " +
                       std::to_string(expected),
                   "save the tokenizer again with the library that made it");
    addedTokens.add(std::move(token));
  }
  addedTokens.finish(field);
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view utf8,
                                          bool addSpecialTokens) const {
  if (utf8.size() > kLongestText)
    throw Error(2004, ExitCode::BadInput,
                "a text of " + std::to_string(utf8.size()) +
                    " bytes is too long to tokenise at once",
                "", "split it into records of at most 1 GiB");
  std::string text = repairUtf8(utf8);
  std::vector<int32_t> ids;
  for (const AddedTokens::Segment &segment : addedTokens.split(text, false)) {
    if (segment.token) {
      ids.push_back(segment.token->id);
      continue;
    }
    encodeText({text.substr(segment.begin, segment.end - segment.begin),
                segment.begin == 0},
               ids);
  }
  return postProcessor.apply(std::move(ids), addSpecialTokens);
}

void BpeTokenizer::encodeText(TextPiece piece,
                              std::vector<int32_t> &ids) const {
  if (normalizer)
    normalizer->apply(piece.text);
  for (const AddedTokens::Segment &segment :
       addedTokens.split(piece.text, true)) {
    if (segment.token) {
      ids.push_back(segment.token->id);
      continue;
    }
    std::vector<TextPiece> words = {
        {piece.text.substr(segment.begin, segment.end - segment.begin),
         piece.atStart && segment.begin == 0}};
    if (preTokenizer)
      preTokenizer->apply(words);
    for (const TextPiece &word : words)
      model.encode(word.text, ids);
  }
}

std::string BpeTokenizer::decode(const std::vector<int32_t> &ids,
                                 bool skipSpecialTokens) const {
  std::vector<std::string> tokens;
  for (int32_t id : ids) {
    const AddedToken *added = addedTokens.byId(id);
    const std::string *token = added ? &added->pattern : model.token(id);
    if (!token)
      continue;
    if (skipSpecialTokens) {
      // By content: an id of the model whose token reads like a special one is
      // left out too.
      const AddedToken *named = addedTokens.byContent(*token);
      if (named && named->special)
        continue;
    }
    tokens.push_back(*token);
  }
  std::string text;
  if (decoder)
    decoder->apply(tokens);
  for (size_t index = 0; index < tokens.size(); ++index) {
    if (index > 0 && !decoder)
      text += ' ';
    text += tokens[index];
  }
  return text;
}

int32_t BpeTokenizer::vocabularySize() const {
  return std::max(model.largestId(), addedTokens.largestId()) + 1;
}

std::optional<int32_t> BpeTokenizer::tokenId(std::string_view token) const {
  if (const AddedToken *added = addedTokens.byContent(token))
    return added->id;
  return model.id(token);
}

} // namespace fsdpq::rt
