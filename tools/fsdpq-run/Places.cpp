#include "tools/fsdpq-run/Places.h"

#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace fsdpq::run {

namespace fs = std::filesystem;

static std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

static bool holdsArchitectures(const fs::path &folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".mlir")
      return true;
  return false;
}

std::string modelsPlace(const std::string &given) {
  if (!given.empty())
    return given;
  if (std::string place = variable("FSDPQ_MODELS"); !place.empty())
    return place;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error)
    return "";
  for (const char *place : {"../models", "../../models", "../share/fsdpq/models"}) {
    const fs::path folder = (program.parent_path() / place).lexically_normal();
    if (holdsArchitectures(folder))
      return folder.string();
  }
  return "";
}

std::string kernelCacheFolder() {
  if (std::string place = variable("FSDPQ_CACHE"); !place.empty())
    return place;
  const std::string home = variable("HOME");
  return home.empty() ? "" : (fs::path(home) / ".cache/fsdpq/kernels").string();
}

void requireFile(const std::string &path, const std::string &option) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw rt::Error(6029, rt::ExitCode::BadInput,
                    option + " names a folder, not a file", path);
  if (::access(path.c_str(), R_OK) != 0)
    throw rt::Error(6029, rt::ExitCode::BadInput,
                    "the file of " + option + " cannot be read: " +
                        std::strerror(errno),
                    path, "check the path");
}

void requireFolderOf(const std::string &path, const std::string &option) {
  const fs::path folder = fs::path(path).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
    throw rt::Error(6029, rt::ExitCode::BadInput,
                    "the folder of " + option +
                        " cannot be written to: " + std::strerror(errno),
                    path, "check the path");
  rt::requireReplaceable(path);
}

} // namespace fsdpq::run
