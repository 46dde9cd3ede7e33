#include "runtime/data/BpeTokenizer.h"

#include <filesystem>

namespace fsdpq::rt {

Tokenizer::~Tokenizer() = default;

/// The id of the token that `config` names under `key`: as a string, or as an
/// object with the token's attributes.
static std::optional<int32_t> specialTokenId(const JsonField &config,
                                             const std::string &key,
                                             const Tokenizer &tokenizer) {
  std::optional<JsonField> field = config.find(key);
  if (!field)
    return std::nullopt;
  std::string name = field->json().is_object() ? field->at("content").string()
                                               : field->string();
  std::optional<int32_t> id = tokenizer.tokenId(name);
  if (!id)
    field->fail(2003, "the token '" + name + "' is not in the vocabulary",
                "the file belongs to another tokenizer.json");
  return id;
}

std::unique_ptr<Tokenizer>
loadTokenizerJson(const std::string &tokenizerJsonPath) {
  nlohmann::json document = readJsonDocument(tokenizerJsonPath);
  auto tokenizer =
      std::make_unique<BpeTokenizer>(JsonField(document, tokenizerJsonPath));

  std::filesystem::path folder =
      std::filesystem::path(tokenizerJsonPath).parent_path();
  for (const char *name :
       {"tokenizer_config.json", "special_tokens_map.json"}) {
    std::string path = (folder / name).string();
    if (!std::filesystem::exists(path))
      continue;
    nlohmann::json configuration = readJsonDocument(path);
    JsonField config(configuration, path);
    tokenizer->setBosId(specialTokenId(config, "bos_token", *tokenizer));
    tokenizer->setEosId(specialTokenId(config, "eos_token", *tokenizer));
    break;
  }
  return tokenizer;
}

} // namespace fsdpq::rt
