#include "runtime/train/AdapterConfig.h"

#include "runtime/io/Json.h"
#include "runtime/support/Error.h"

#include <cmath>
#include <filesystem>

namespace fsdpq::rt {

namespace fs = std::filesystem;
using nlohmann::json;

static constexpr int64_t maxRank = 4096;

double AdapterConfig::scale() const {
  const auto r = static_cast<double>(rank);
  return alpha / (useRslora ? std::sqrt(r) : r);
}

namespace {

[[noreturn]] void failField(const std::string &path, const std::string &field,
                            const json &value, const std::string &expected) {
  throw Error(5010, ExitCode::BadInput,
              "\"" + field + "\" is " + describeJson(value) + "; expected " +
                  expected,
              path);
}

/// Whether a field is absent or says "not used" in one of PEFT's ways.
bool isUnused(const json &config, const char *field) {
  const auto found = config.find(field);
  return found == config.end() || found->is_null() || *found == json(false) ||
         ((found->is_object() || found->is_array()) && found->empty());
}

/// Fields that change what the adapter computes.
void refuseUnsupported(const json &config, const std::string &path) {
  static constexpr const char *fields[] = {
      "use_dora",          "use_qalora",         "use_bdlora",
      "rank_pattern",      "alpha_pattern",      "layers_to_transform",
      "layer_replication", "modules_to_save",    "exclude_modules",
      "target_parameters", "fan_in_fan_out",     "trainable_token_indices",
      "lora_bias",         "alora_invocation_tokens"};
  for (const char *field : fields)
    if (!isUnused(config, field))
      throw Error(5011, ExitCode::BadInput,
                  "the adapter uses \"" + std::string(field) +
                      "\": " + describeJson(config[field]) +
                      ", which is not supported",
                  path, "use a plain LoRA adapter");
  const auto bias = config.find("bias");
  if (bias != config.end() && *bias != json("none"))
    throw Error(5011, ExitCode::BadInput,
                "the adapter has trained biases (\"bias\": " +
                    describeJson(*bias) + "), which are not supported",
                path, "use an adapter made with bias = \"none\"");
}

std::vector<std::string> readTargets(const json &config,
                                     const std::string &path) {
  const json *targets = findKey(config, "target_modules", path);
  const json value = targets ? *targets : json();
  if (value == json("all-linear"))
    return {"all-linear"};
  if (value.is_string())
    throw Error(5011, ExitCode::BadInput,
                "\"target_modules\" is a pattern, " + describeJson(value) +
                    ", which is not supported",
                path, "list the modules' names instead");
  std::vector<std::string> names;
  if (value.is_array())
    for (const json &name : value) {
      if (!name.is_string() || name.get_ref<const std::string &>().empty())
        failField(path, "target_modules", value, "a list of names");
      names.push_back(name);
    }
  if (names.empty())
    failField(path, "target_modules", value, "a list of names");
  return names;
}

} // namespace

AdapterConfig readAdapterConfig(const std::string &folder) {
  const std::string path = (fs::path(folder) / adapterConfigFile).string();
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw Error(5010, ExitCode::BadInput,
                std::string("there is no ") + adapterConfigFile +
                    " in the adapter's folder",
                folder, "name a folder that PEFT or fsdpq-run saved");
  const json config = readJsonFile(path);
  if (!config.is_object())
    throw Error(5010, ExitCode::BadInput,
                "the configuration is " + describeJson(config) +
                    ", not an object",
                path);
  const std::string type = requireString(config, "peft_type", path);
  if (type != "LORA")
    throw Error(5011, ExitCode::BadInput,
                "\"peft_type\" is \"" + type + "\", which is not supported",
                path, "use a LoRA adapter");
  refuseUnsupported(config, path);

  AdapterConfig result;
  result.rank = requireInt(config, "r", path);
  if (result.rank < 1 || result.rank > maxRank)
    failField(path, "r", config["r"], "1 to " + std::to_string(maxRank));
  result.alpha = requireNumber(config, "lora_alpha", path);
  result.dropout = optionalNumber(config, "lora_dropout", path).value_or(0);
  if (!(result.dropout >= 0 && result.dropout < 1))
    failField(path, "lora_dropout", config["lora_dropout"],
              "0 or more and less than 1");
  result.useRslora = optionalBool(config, "use_rslora", path).value_or(false);
  result.targets = readTargets(config, path);
  result.baseModel =
      optionalString(config, "base_model_name_or_path", path).value_or("");
  return result;
}

/// A whole number without its fraction: older PEFT versions declare alpha int.
static json plainNumber(double value) {
  if (value == std::trunc(value) && std::abs(value) < 1e15)
    return static_cast<int64_t>(value);
  return value;
}

std::string adapterConfigText(const AdapterConfig &config) {
  const json text = {
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path",
       config.baseModel.empty() ? json() : json(config.baseModel)},
      {"revision", nullptr},
      {"inference_mode", true},
      {"r", config.rank},
      {"lora_alpha", plainNumber(config.alpha)},
      {"lora_dropout", config.dropout},
      {"target_modules", config.targets},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"init_lora_weights", true},
      {"modules_to_save", nullptr},
      {"layers_to_transform", nullptr},
      {"layers_pattern", nullptr},
      {"rank_pattern", json::object()},
      {"alpha_pattern", json::object()},
      {"use_rslora", config.useRslora},
      {"use_dora", false}};
  return text.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace fsdpq::rt
