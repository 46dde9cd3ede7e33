#include "runtime/io/ModelFolder.h"
#include "runtime/io/Gguf.h"
#include "runtime/io/HubCache.h"
#include "runtime/io/Json.h"
#include "runtime/io/Safetensors.h"
#include "runtime/support/Error.h"

#include <filesystem>

namespace fsdpq::rt {

namespace fs = std::filesystem;

namespace {

/// What cannot be looked at counts as absent.
bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Whether the folder itself holds a file with this extension.
bool holdsFile(const fs::path &folder, const char *extension) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == extension)
      return true;
  return false;
}

/// `hint` is what to do when a file is missing.
ModelFiles openFolder(const fs::path &folder, const std::string &hint) {
  const fs::path config = folder / "config.json";
  if (!isThere(config)) {
    if (holdsFile(folder, ".gguf"))
      throw Error(1213, ExitCode::BadInput, "the folder has no config.json",
                  folder.string(), "name its .gguf file itself");
    throw Error(1213, ExitCode::BadInput, "the folder has no config.json",
                folder.string(), hint);
  }
  if (!isThere(folder / "model.safetensors") &&
      !isThere(folder / "model.safetensors.index.json")) {
    if (holdsFile(folder, ".bin"))
      throw Error(1214, ExitCode::BadInput,
                  "the weights are .bin files (pickled), which are not read",
                  folder.string(),
                  "take a revision of the model that has safetensors, or save "
                  "it again with Transformers' save_pretrained");
    throw Error(1213, ExitCode::BadInput,
                "the folder has neither model.safetensors nor "
                "model.safetensors.index.json",
                folder.string(), hint);
  }

  ModelFiles model;
  model.path = folder.string();
  model.config = readJsonFile(config.string());
  if (!model.config.is_object())
    throw Error(1205, ExitCode::BadInput,
                "the configuration is " + describeJson(model.config) +
                    ", not an object",
                config.string(), hint);
  model.tensors = openSafetensors(model.path);
  return model;
}

ModelFiles openFile(const std::string &path) {
  if (fs::path(path).extension() == ".safetensors")
    throw Error(1214, ExitCode::BadInput,
                "a single safetensors file has no configuration", path,
                "name the folder that also holds config.json");
  ModelFiles model;
  auto gguf = openGguf(path);
  model.path = path;
  model.isGguf = true;
  model.ggufMetadata = gguf->metadata();
  model.tensors = std::move(gguf);
  return model;
}

} // namespace

ModelFiles openModel(const std::string &nameOrPath,
                     const std::string &revision) {
  std::error_code ignored;
  if (fs::is_directory(nameOrPath, ignored))
    return openFolder(nameOrPath, "fetch the model's files again");
  if (isThere(nameOrPath))
    return openFile(nameOrPath);
  if (!isHubName(nameOrPath) || nameOrPath.ends_with(".gguf"))
    throw Error(1211, ExitCode::BadInput,
                "no file or folder \"" + nameOrPath + "\"", "",
                "check the path, or give a model's name as org/name");

  const std::string wanted = revision.empty() ? "main" : revision;
  const std::string download =
      "hf download " + nameOrPath +
      (wanted == "main" ? "" : " --revision " + wanted);
  const std::optional<std::string> snapshot =
      findInHubCache(nameOrPath, wanted);
  if (!snapshot)
    throw Error(1212, ExitCode::BadInput,
                "model \"" + nameOrPath + "\" (revision " + wanted +
                    ") is neither a path nor in the Hugging Face cache",
                hubCacheFolder(), "download it first: " + download);
  return openFolder(*snapshot, "complete the download: " + download);
}

} // namespace fsdpq::rt
