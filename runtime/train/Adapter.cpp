#include "runtime/train/Adapter.h"

#include "runtime/io/Safetensors.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/train/FirstRank.h"
#include "runtime/train/Parameters.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <unordered_set>

namespace fsdpq::rt {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view prefix = "base_model.model.";
constexpr std::string_view factorA = ".lora_A.weight";

/// Calls `action(parameter, ordinal, PEFT name)` for each adapter tensor.
void forEachAdapterTensor(
    const plan::Plan &plan,
    const std::function<void(const plan::Parameter &, int64_t, std::string)>
        &action) {
  for (const plan::Parameter *parameter : *plan.parameters()) {
    if (!isAdapter(*parameter))
      continue;
    if (!parameter->hf() ||
        !parameter->hf()->string_view().starts_with(prefix))
      throw Error(5012, ExitCode::BadInput,
                  "the plan gives adapter parameter '" +
                      parameter->name()->str() + "' no PEFT name",
                  "", "compile the plan again");
    for (int64_t i = 0; i < instanceCount(plan, *parameter); ++i)
      action(*parameter, i,
             instanceName(*parameter->hf(), plan, *parameter, i));
  }
}

/// "….lora_A.weight" as "….lora_A.default.weight"
std::string withAdapterName(const std::string &name) {
  const size_t end = name.rfind(".weight");
  return name.substr(0, end) + ".default" + name.substr(end);
}

const TensorInfo &findAdapterTensor(const TensorSource &source,
                                    const std::string &name,
                                    const std::vector<int64_t> &shape) {
  const TensorInfo *tensor = source.find(name);
  if (!tensor)
    tensor = source.find(withAdapterName(name));
  if (!tensor)
    throw Error(5012, ExitCode::BadInput,
                "the adapter has no tensor '" + name + "' " + shapeText(shape),
                source.location(),
                "check that it was made for this model and these targets");
  if (tensor->shape != shape)
    throw Error(5012, ExitCode::BadInput,
                "tensor '" + name + "' has the shape " +
                    shapeText(tensor->shape) + "; the model needs " +
                    shapeText(shape),
                source.location(),
                "check that the adapter was made for this model");
  return *tensor;
}

} // namespace

std::vector<std::string> adaptedModules(const plan::Plan &plan) {
  std::vector<std::string> modules;
  for (const plan::Parameter *parameter : *plan.parameters()) {
    if (!isAdapter(*parameter) || !parameter->hf() ||
        !parameter->hf()->string_view().ends_with(factorA))
      continue;
    std::string_view path = parameter->hf()->string_view();
    path.remove_suffix(factorA.size());
    const std::string module(path.substr(path.rfind('.') + 1));
    if (std::ranges::find(modules, module) == modules.end())
      modules.push_back(module);
  }
  return modules;
}

void loadAdapter(Executor &executor, const std::string &folder) {
  const auto source =
      openSafetensors((fs::path(folder) / adapterWeightsFile).string());
  std::unordered_set<std::string> used;
  std::vector<float> values;
  forEachAdapterTensor(
      executor.plan().plan(), [&](const plan::Parameter &parameter,
                                  int64_t ordinal, const std::string &name) {
        const TensorInfo &tensor =
            findAdapterTensor(*source, name, shapeOf(parameter));
        const ElementRange held = heldElements(executor, parameter);
        values.resize(static_cast<size_t>(held.size()));
        source->readF32(tensor, held.begin, held.end, values.data());
        writeHeldElements(executor, parameter, ordinal, values);
        used.insert(tensor.name);
      });
  for (const std::string &name : source->names())
    if (!used.contains(name))
      throw Error(5013, ExitCode::BadInput,
                  "tensor '" + name + "' of the adapter has no place in the "
                  "model", source->location(),
                  "check that it was made for this model");
}

void saveAdapter(const Executor &executor, AdapterConfig config,
                 const std::string &folder) {
  const plan::Plan &plan = executor.plan().plan();
  std::vector<SafetensorsWriter::Spec> specs;
  std::vector<Instance> instances;
  forEachAdapterTensor(plan, [&](const plan::Parameter &parameter,
                                 int64_t ordinal, std::string name) {
    if (name.ends_with(factorA))
      config.rank = parameter.shape()->Get(0);
    specs.push_back({std::move(name), DType::F32, shapeOf(parameter)});
    instances.push_back({&parameter, ordinal});
  });
  config.targets = adaptedModules(plan);

  FirstRank first(executor.communicator());
  std::optional<AtomicFile> configFile;
  std::optional<SafetensorsWriter> weights;
  first.run([&] {
    configFile.emplace((fs::path(folder) / adapterConfigFile).string());
    configFile->write(adapterConfigText(config));
    weights.emplace((fs::path(folder) / adapterWeightsFile).string(),
                    std::move(specs));
  });
  readParameters(executor, instances, [&](std::span<const float> values) {
    first.run([&] { weights->append(values.data(), values.size_bytes()); });
  });
  first.run([&] {
    weights->commit();
    configFile->commit();
  });
  first.finish();
}

} // namespace fsdpq::rt
