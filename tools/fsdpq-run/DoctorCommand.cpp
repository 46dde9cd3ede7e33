#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/io/HubCache.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/support/Error.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/MachineMemory.h"
#include "tools/fsdpq-run/Places.h"
#include "tools/fsdpq-run/options/Settings.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace fsdpq::run {

namespace fs = std::filesystem;

namespace {

/// The value of the first "key : value" in `file`; "" if there is none.
std::string firstValue(const char *file, const std::string &key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) {
      const size_t value = line.find_first_not_of(" \t:", key.size());
      return value == std::string::npos ? "" : line.substr(value);
    }
  return "";
}

std::string availableMemory() {
  std::istringstream text(firstValue("/proc/meminfo", "MemAvailable"));
  uint64_t kibibytes;
  return text >> kibibytes ? ", available " + rt::formatBytes(kibibytes * 1024)
                           : "";
}

/// Instruction sets that decide how fast the CPU back end is.
std::string vectorFeatures() {
  std::string features;
#ifdef __x86_64__
  auto add = [&](const char *name, bool isThere) {
    if (isThere)
      features += (features.empty() ? "" : " ") + std::string(name);
  };
  add("avx2", __builtin_cpu_supports("avx2"));
  add("fma", __builtin_cpu_supports("fma"));
  add("avx512f", __builtin_cpu_supports("avx512f"));
  add("avx512bf16", __builtin_cpu_supports("avx512bf16"));
#endif
  return features.empty() ? "none known" : features;
}

std::string folderText(const std::string &folder) {
  if (folder.empty())
    return "not found";
  std::error_code error;
  size_t files = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    ++files;
  return folder + (error ? " (not there)"
                         : " (" + std::to_string(files) + " entries)");
}

} // namespace

int runDoctor(const CommandLine &line) {
  const Settings settings = makeSettings(line);
  const auto memory = static_cast<uint64_t>(machineMemory());
  const std::string models = modelsPlace(settings.models);
  printResult(
      "plan format     " + std::to_string(rt::planVersion) +
      "\nCPU             " + firstValue("/proc/cpuinfo", "model name") +
      "\nvector units    " + vectorFeatures() + "\nthreads         " +
      std::to_string(rt::CpuDevice(settings.threads).threads()) +
      "\nmemory          " + rt::formatBytes(memory) + availableMemory() +
      "\narchitectures   " +
      (models.empty() ? "not found: name them with --models or $FSDPQ_MODELS"
                      : folderText(models)) +
      "\nkernel cache    " + folderText(kernelCacheFolder()) +
      "\nmodel cache     " + folderText(rt::hubCacheFolder()) + "\n");
  return models.empty() ? static_cast<int>(rt::ExitCode::RunFailure) : 0;
}

} // namespace fsdpq::run
