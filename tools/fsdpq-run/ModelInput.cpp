#include "tools/fsdpq-run/ModelInput.h"

#include "runtime/io/HubCache.h"
#include "runtime/io/Json.h"
#include "runtime/support/Error.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/Places.h"

#include <algorithm>
#include <filesystem>

namespace fsdpq::run {

namespace fs = std::filesystem;
using nlohmann::json;
using rt::Error;
using rt::ExitCode;

namespace {

constexpr const char *ropeFactors = "rope_freqs.weight";

/// The file's metadata as the compiler reads it (see ModelInput).
json ggufConfig(const rt::ModelFiles &files) {
  json config = json::object();
  // Vocabularies are megabytes of text that no architecture asks for.
  for (const auto &[key, value] : files.ggufMetadata.items())
    if (!key.starts_with("tokenizer."))
      config[key] = value;
  json &tensors = config["tensors"] = json::object();
  for (const std::string &name : files.tensors->names())
    tensors[name] = files.tensors->find(name)->shape;
  if (const rt::TensorInfo *factors = files.tensors->find(ropeFactors)) {
    std::vector<float> values(static_cast<size_t>(factors->elements()));
    files.tensors->readF32(*factors, 0, factors->elements(), values.data());
    config[ropeFactors] = values;
  }
  return config;
}

int64_t vocabularyOf(const rt::ModelFiles &files) {
  if (!files.isGguf)
    return rt::optionalInt(files.config, "vocab_size", files.path).value_or(0);
  const rt::TensorInfo *embedding = files.tensors->find("token_embd.weight");
  return embedding && !embedding->shape.empty() ? embedding->shape[0] : 0;
}

ModelInput inputOf(rt::ModelFiles files) {
  ModelInput input;
  const json config = files.isGguf ? ggufConfig(files) : files.config;
  // GGUF strings may hold bytes that are not UTF-8.
  input.configText = config.dump(-1, ' ', false, json::error_handler_t::replace);
  input.vocabulary = vocabularyOf(files);
  input.files = std::move(files);
  return input;
}

/// The config.json that `name` means, or "" if it means something else.
std::string findConfig(const std::string &name, const std::string &revision) {
  std::error_code ignored;
  if (fs::is_directory(name, ignored))
    return (fs::path(name) / "config.json").string();
  if (fs::is_regular_file(name, ignored))
    return fs::path(name).extension() == ".json" ? name : "";
  if (rt::isHubName(name))
    if (auto snapshot = rt::findInHubCache(name, revision))
      return (fs::path(*snapshot) / "config.json").string();
  return "";
}

} // namespace

ModelInput openModelInput(const Settings &settings) {
  return inputOf(rt::openModel(settings.modelName, settings.revision));
}

ModelInput openModelConfig(const Settings &settings) {
  const std::string path = findConfig(settings.modelName, settings.revision);
  if (path.empty())
    return openModelInput(settings);
  rt::ModelFiles files;
  files.path = fs::path(path).parent_path().string();
  files.config = rt::readJsonFile(path);
  if (!files.config.is_object())
    throw Error(1205, ExitCode::BadInput,
                "the configuration is " + rt::describeJson(files.config) +
                    ", not an object",
                path);
  return inputOf(std::move(files));
}

std::unique_ptr<rt::Tokenizer> loadTokenizer(const rt::ModelFiles &files) {
  if (files.isGguf)
    return rt::loadTokenizerGguf(files.ggufMetadata);
  const fs::path path = fs::path(files.path) / "tokenizer.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw Error(6030, ExitCode::BadInput,
                "the model's folder has no tokenizer.json", files.path,
                "only pre-tokenised records (input_ids) need none");
  return rt::loadTokenizerJson(path.string());
}

/// Adds the ids under "eos_token_id": a number or a list of them.
static void addStopIds(const json &config, std::vector<int32_t> &ids) {
  const auto found = config.find("eos_token_id");
  if (found == config.end())
    return;
  const json list = found->is_array() ? *found : json::array({*found});
  for (const json &id : list)
    if (id.is_number_integer() && id >= 0 && id <= INT32_MAX)
      ids.push_back(id);
}

std::vector<int32_t> stopIds(const rt::ModelFiles &files,
                             const rt::Tokenizer &tokenizer) {
  std::vector<int32_t> ids;
  if (auto eos = tokenizer.eosId())
    ids.push_back(*eos);
  if (files.isGguf)
    return ids;
  addStopIds(files.config, ids);
  const fs::path generation = fs::path(files.path) / "generation_config.json";
  std::error_code ignored;
  if (fs::exists(generation, ignored)) {
    const json config = rt::readJsonFile(generation.string());
    if (config.is_object())
      addStopIds(config, ids);
  }
  return ids;
}

/// An embedding has no row for other ids, and nothing behind checks them.
static void requireIdsBelow(int64_t vocabulary, const rt::Dataset &data,
                            const std::string &path) {
  if (vocabulary == 0)
    return;
  for (size_t row = 0; row < data.rows.size(); ++row)
    for (int32_t id : data.rows[row].ids)
      if (id < 0 || id >= vocabulary)
        throw Error(6024, ExitCode::BadInput,
                    "record " + std::to_string(row + 1) + " has the token " +
                        std::to_string(id) + "; the model has " +
                        std::to_string(vocabulary),
                    path, "use the tokenizer that belongs to the model");
}

static bool teaches(const rt::Row &row) {
  return std::any_of(row.labels.begin() + (row.labels.empty() ? 0 : 1),
                     row.labels.end(),
                     [](int32_t label) { return label != rt::kIgnoredLabel; });
}

/// With a tokenizer if there is one that can be read.
static rt::Dataset readRecords(const Settings &settings,
                               const ModelInput &model) {
  rt::DatasetOptions options;
  options.contextLength = settings.contextLength;
  options.vocabularySize = model.vocabulary;
  std::unique_ptr<rt::Tokenizer> tokenizer;
  std::optional<Error> tokenizerError;
  try {
    tokenizer = loadTokenizer(model.files);
  } catch (const Error &error) {
    tokenizerError = error;
  }
  try {
    return rt::loadDataset(settings.dataset, tokenizer.get(), options);
  } catch (const Error &error) {
    constexpr int needsTokenizer = 2105;
    if (error.id() == needsTokenizer && tokenizerError)
      throw *tokenizerError;
    throw;
  }
}

rt::Dataset loadRecords(const Settings &settings, const ModelInput &model) {
  requireFile(settings.dataset, "--dataset");
  rt::Dataset data = readRecords(settings, model);
  note("data: " + data.description);
  if (data.truncatedRows > 0)
    note(grouped(data.truncatedRows) + " records are cut to " +
         std::to_string(settings.contextLength) +
         " tokens (--context_length)");
  if (settings.datasetSamples &&
      *settings.datasetSamples < static_cast<int64_t>(data.rows.size())) {
    data.rows.resize(static_cast<size_t>(*settings.datasetSamples));
    note("the first " + grouped(*settings.datasetSamples) +
         " records are used (--dataset_samples)");
  }
  requireIdsBelow(model.vocabulary, data, settings.dataset);
  const auto idle = std::count_if(data.rows.begin(), data.rows.end(),
                                  [](const rt::Row &row) {
                                    return !teaches(row);
                                  });
  if (idle == static_cast<std::ptrdiff_t>(data.rows.size()))
    throw Error(6041, ExitCode::BadInput,
                "none of the " + grouped(idle) + " records has a token to learn",
                settings.dataset,
                "prompts may fill the rows: raise --context_length");
  if (idle > 0)
    note(grouped(idle) + " records have no token to learn");
  return data;
}

} // namespace fsdpq::run
