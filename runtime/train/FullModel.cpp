#include "runtime/train/FullModel.h"

#include "runtime/io/Safetensors.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/MappedFile.h"
#include "runtime/train/Parameters.h"

#include <filesystem>

namespace fsdpq::rt {

namespace fs = std::filesystem;

/// What a reader of the model needs besides weights and configuration.
static void copyCompanions(const fs::path &from, const fs::path &to) {
  static constexpr const char *names[] = {
      "tokenizer.json",          "tokenizer_config.json",
      "special_tokens_map.json", "chat_template.jinja",
      "generation_config.json"};
  for (const char *name : names) {
    std::error_code ignored;
    if (!fs::is_regular_file(from / name, ignored) ||
        fs::equivalent(from / name, to / name, ignored))
      continue;
    MappedFile file((from / name).string());
    writeFileAtomically((to / name).string(),
                        {reinterpret_cast<const char *>(file.data()),
                         file.size()});
  }
}

static void saveWeights(const Executor &executor, const fs::path &path) {
  const auto &parameters = *executor.plan().plan().parameters();
  std::vector<SafetensorsWriter::Spec> specs;
  for (const plan::Parameter *parameter : parameters) {
    if (!parameter->hf())
      throw Error(5003, ExitCode::BadInput,
                  "the plan gives parameter '" + parameter->name()->str() +
                      "' no Hugging Face name");
    for (int64_t i = 0; i < instanceCount(*parameter); ++i)
      specs.push_back({instanceName(*parameter->hf(), *parameter, i),
                       DType::F32, shapeOf(*parameter)});
  }
  SafetensorsWriter writer(path.string(), std::move(specs));
  for (const plan::Parameter *parameter : parameters)
    for (int64_t i = 0; i < instanceCount(*parameter); ++i) {
      const std::vector<float> values = readParameter(executor, *parameter, i);
      writer.appendF32(values.data(), static_cast<int64_t>(values.size()));
    }
  writer.commit();
}

void saveFullModel(const Executor &executor, const nlohmann::json &config,
                   const std::string &modelFolder, const std::string &folder) {
  saveWeights(executor, fs::path(folder) / "model.safetensors");
  nlohmann::json saved = config;
  // Readers take this as the type to compute in; what was trained is f32.
  for (const char *key : {"dtype", "torch_dtype"})
    if (saved.contains(key))
      saved[key] = "float32";
  writeFileAtomically((fs::path(folder) / "config.json").string(),
                      saved.dump(2) + "\n");
  copyCompanions(modelFolder, folder);
}

} // namespace fsdpq::rt
