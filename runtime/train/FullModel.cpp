#include "runtime/train/FullModel.h"

#include "runtime/io/Safetensors.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/MappedFile.h"
#include "runtime/train/FirstRank.h"
#include "runtime/train/Parameters.h"

#include <filesystem>
#include <optional>

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

static void saveWeights(const Executor &executor, FirstRank &first,
                        const fs::path &path) {
  const plan::Plan &plan = executor.plan().plan();
  std::vector<SafetensorsWriter::Spec> specs;
  std::vector<Instance> instances;
  for (const plan::Parameter *parameter : *plan.parameters()) {
    if (!parameter->hf())
      throw Error(5003, ExitCode::BadInput,
                  "the plan gives parameter '" + parameter->name()->str() +
                      "' no Hugging Face name");
    for (int64_t i = 0; i < instanceCount(plan, *parameter); ++i) {
      specs.push_back({instanceName(*parameter->hf(), plan, *parameter, i),
                       DType::F32, shapeOf(*parameter)});
      instances.push_back({parameter, i});
    }
  }
  std::optional<SafetensorsWriter> writer;
  first.run([&] { writer.emplace(path.string(), std::move(specs)); });
  readParameters(executor, instances, [&](std::span<const float> values) {
    first.run([&] { writer->append(values.data(), values.size_bytes()); });
  });
  first.run([&] { writer->commit(); });
}

void saveFullModel(const Executor &executor, const nlohmann::json &config,
                   const std::string &modelFolder, const std::string &folder) {
  FirstRank first(executor.communicator());
  saveWeights(executor, first, fs::path(folder) / "model.safetensors");
  first.run([&] {
    nlohmann::json saved = config;
    // Readers take this as the type to compute in; what was trained is f32.
    for (const char *key : {"dtype", "torch_dtype"})
      if (saved.contains(key))
        saved[key] = "float32";
    writeFileAtomically((fs::path(folder) / "config.json").string(),
                        saved.dump(2) + "\n");
    copyCompanions(modelFolder, folder);
  });
  first.finish();
}

} // namespace fsdpq::rt
