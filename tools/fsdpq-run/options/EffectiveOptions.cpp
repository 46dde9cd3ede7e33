#include "tools/fsdpq-run/options/Settings.h"
#include "tools/fsdpq-run/options/Values.h"

#include <yaml-cpp/yaml.h>

#include <cmath>

namespace fsdpq::run {
namespace {

/// Values that rules decided, in the place of what was given or omitted.
Options withDecisions(const Settings &settings, Options options) {
  auto setNumber = [&](std::string_view name, double value) {
    options.set(name, numberText(value));
  };
  options.set("world_size", std::to_string(settings.ranks));
  const bool clips = std::isfinite(settings.maxGradNorm);
  options.set("apply_gradient_clipping", clips ? "true" : "false");
  options.set("use_gradient_checkpointing",
              settings.checkpointing ? "true" : "false");
  if (settings.trainType == TrainType::Full)
    options.set("save_model", settings.saveModel ? "true" : "false");
  if (settings.optimizer == "adamw" || settings.optimizer == "adam")
    for (const char *name : {"beta1", "beta2", "epsilon"})
      setNumber(std::string("adam_") + name,
                settings.optimizerOptions.at(name));
  if (settings.lora.rank > 0) {
    options.set("lora_rank", std::to_string(settings.lora.rank));
    setNumber("lora_alpha", settings.lora.alpha);
    setNumber("lora_dropout", settings.lora.dropout);
    std::string targets;
    for (const std::string &target : settings.lora.targets)
      targets += (targets.empty() ? "" : ",") + target;
    options.set("lora_target_modules", targets);
  }
  return options;
}

/// YAML 1.1 takes "1e-05" for text; "1.0e-05" is a number to all readers.
std::string yamlNumber(double value) {
  std::string text = numberText(value);
  const size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos)
    text.insert(exponent, ".0");
  return text;
}

void emitValue(YAML::Emitter &out, const OptionSpec &option,
               const Options &options) {
  switch (option.kind) {
  case ValueKind::Bool:
    out << options.boolean(option.name);
    break;
  case ValueKind::Int:
    out << options.integer(option.name);
    break;
  case ValueKind::Real:
    out << yamlNumber(options.real(option.name));
    break;
  case ValueKind::Text:
  case ValueKind::Choice:
    // Quoted, or else "no", "1e3" and "~" would read as something else.
    out << YAML::DoubleQuoted << options.text(option.name);
    break;
  case ValueKind::List:
    out << YAML::Flow << YAML::BeginSeq;
    for (const std::string &part : options.list(option.name))
      out << YAML::DoubleQuoted << part;
    out << YAML::EndSeq;
    break;
  }
}

template <typename Filter>
std::string yamlOf(const Settings &settings, const Options &options,
                   Filter isWanted) {
  const Options effective = withDecisions(settings, options);
  YAML::Emitter out;
  out << YAML::BeginMap;
  for (const OptionSpec &option : optionTable()) {
    if (option.optionClass != OptionClass::Honoured ||
        !(option.commands & settings.command) || !effective.find(option.name) ||
        !isWanted(option))
      continue;
    out << YAML::Key << std::string(option.name) << YAML::Value;
    emitValue(out, option, effective);
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

} // namespace

std::string comparedOptions(const Settings &settings, const Options &options) {
  return yamlOf(settings, options, [](const OptionSpec &option) {
    constexpr std::string_view groups =
        "Data|Training|Adapters|Quantisation|Generation";
    constexpr std::string_view places = "dataset|adapter";
    return option.name == "train_type" ||
           (isChoice(groups, option.group) && !isChoice(places, option.name));
  });
}

std::string effectiveOptionsYaml(const Settings &settings,
                                 const Options &options) {
  return yamlOf(settings, options, [](const OptionSpec &) { return true; });
}

} // namespace fsdpq::run
