#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/LibraryVersions.h"
#include "runtime/io/HubCache.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/support/Error.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/MachineMemory.h"
#include "tools/fsdpq-run/Places.h"
#include "tools/fsdpq-run/options/Settings.h"

#ifdef FSDPQ_HAS_CUDA
#include "runtime/device/cuda/CudaDevice.h"
#endif

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>

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

//===--- CUDA ---------------------------------------------------------------//

/// "NVRTC           13.0 (/opt/cuda/lib64/libnvrtc.so.13)", or why there is none.
std::string libraryLine(const char *label, rt::CudaLibrary which) {
  std::string text;
  try {
    const std::string version = rt::versionOf(which);
    text = version + " (" + rt::SharedLibrary::get(which).path() + ")";
  } catch (const rt::Error &error) {
    text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
  }
  return label + text + "\n";
}

#ifdef FSDPQ_HAS_CUDA
std::string gpuLines() {
  std::string why;
  const std::vector<rt::GpuInfo> gpus = rt::findGpus(why);
  if (gpus.empty())
    return "GPUs            none: " + why + "\n";
  std::string text;
  for (const rt::GpuInfo &gpu : gpus) {
    std::string label = "GPU " + std::to_string(gpu.ordinal);
    label.resize(16, ' ');
    text += label + gpu.name + ", " + rt::formatBytes(gpu.totalBytes) + ", " +
            gpu.architecture + ", " + std::to_string(gpu.processors) +
            " multiprocessors\n";
  }
  if (gpus.size() == 1)
    return text;
  // A row for each GPU: whose memory it can use directly.
  for (const rt::GpuInfo &from : gpus) {
    text += from.ordinal == 0 ? "peer access     " : std::string(16, ' ');
    text += "GPU " + std::to_string(from.ordinal) + ":";
    for (const rt::GpuInfo &to : gpus)
      text += from.ordinal == to.ordinal                       ? " -"
              : rt::canAccessPeer(from.ordinal, to.ordinal) ? " yes"
                                                             : " no";
    text += "\n";
  }
  return text;
}
#else
std::string gpuLines() {
  return "GPUs            not usable: fsdpq-run was built without cuda.h\n";
}
#endif

/// Copies from pinned memory and links between GPUs need some of it.
std::string memoryLock() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited"
                                         : rt::formatBytes(limit.rlim_cur);
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
      "\nmodel cache     " + folderText(rt::hubCacheFolder()) +
      "\nmemory lock     " + memoryLock() + "\n" +
      libraryLine("CUDA driver     ", rt::CudaLibrary::Driver) +
      libraryLine("NVRTC           ", rt::CudaLibrary::Nvrtc) +
      libraryLine("cuBLASLt        ", rt::CudaLibrary::CublasLt) +
      libraryLine("NCCL            ", rt::CudaLibrary::Nccl) + gpuLines());
  return models.empty() ? static_cast<int>(rt::ExitCode::RunFailure) : 0;
}

} // namespace fsdpq::run
