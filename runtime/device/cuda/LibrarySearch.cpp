#include "runtime/device/cuda/LibrarySearch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace fsdpq::rt {

namespace fs = std::filesystem;

SearchPlaces SearchPlaces::own() {
  return {[](const char *name) -> std::string {
            const char *value = std::getenv(name);
            return value ? value : "";
          },
          "/usr/local/cuda"};
}

const LibraryNames &namesOf(CudaLibrary which) {
  static const LibraryNames driver = {
      "the CUDA driver",
      "libcuda.so",
      {"libcuda.so.1"},
      "install NVIDIA's driver; in a container, start it with the GPUs"};
  static const LibraryNames nvrtc = {
      "NVRTC",
      "libnvrtc.so",
      {"libnvrtc.so.13", "libnvrtc.so.12"},
      "install a CUDA toolkit and name it with $CUDA_HOME, or the wheel "
      "nvidia-cuda-nvrtc"};
  static const LibraryNames cublas = {
      "cuBLASLt",
      "libcublasLt.so",
      {"libcublasLt.so.13", "libcublasLt.so.12"},
      "install a CUDA toolkit and name it with $CUDA_HOME, or the wheel "
      "nvidia-cublas"};
  static const LibraryNames nccl = {
      "NCCL",
      "libnccl.so",
      {"libnccl.so.2"},
      "install libnccl2 or the wheel nvidia-nccl-cu13; $FSDPQ_CUDA_PATH names "
      "a folder"};
  switch (which) {
  case CudaLibrary::Driver:
    return driver;
  case CudaLibrary::Nvrtc:
    return nvrtc;
  case CudaLibrary::CublasLt:
    return cublas;
  case CudaLibrary::Nccl:
    break;
  }
  return nccl;
}

namespace {

/// The folders below `folder` that `wanted` takes, the highest name first.
template <typename Wanted>
std::vector<fs::path> subfolders(const fs::path &folder, const Wanted &wanted) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->is_directory(error) && wanted(entry->path().filename().string()))
      found.push_back(entry->path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

class Search {
public:
  Search(CudaLibrary which, std::vector<std::string> &folders)
      : names(namesOf(which)), folders(folders) {}

  /// The library as it may lie in one folder. Of a folder with several versions
  /// the newest that is known comes first, the unversioned name last.
  void lookIn(const fs::path &folder) {
    folders.push_back(folder.string());
    std::vector<std::string> files(names.sonames.begin(), names.sonames.end());
    files.push_back(names.stem);
    std::error_code error;
    for (const std::string &file : files)
      if (fs::is_regular_file(folder / file, error))
        result.push_back({(folder / file).string(), true});
  }

  /// A toolkit's root, or a folder of libraries. Never its stubs: they load,
  /// and do nothing.
  void lookInToolkit(const std::string &root) {
    if (root.empty())
      return;
    lookIn(root);
    lookIn(fs::path(root) / "lib64");
    lookIn(fs::path(root) / "lib");
  }

  /// The wheels of NVIDIA in <root>/lib/python3.N/site-packages: a folder for
  /// each library, or, from CUDA 13 on, one for all.
  void lookInPython(const fs::path &root) {
    const auto isPython = [](const std::string &name) {
      return name.starts_with("python3");
    };
    const auto any = [](const std::string &) { return true; };
    for (const char *lib : {"lib", "lib64"})
      for (const fs::path &python : subfolders(root / lib, isPython))
        for (const char *packages : {"site-packages", "dist-packages"})
          for (const fs::path &wheel :
               subfolders(python / packages / "nvidia", any))
            lookIn(wheel / "lib");
  }

  void askLoader() {
    folders.push_back("the loader's own places");
    for (const char *name : names.sonames)
      result.push_back({name, false});
  }

  std::vector<Candidate> result;

private:
  const LibraryNames &names;
  std::vector<std::string> &folders;
};

/// The folder above the one of the first python3 on PATH: a virtual
/// environment's, or a system's.
fs::path pythonRoot(const std::string &path) {
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const fs::path python =
        fs::path(path.substr(begin, end - begin)) / "python3";
    std::error_code error;
    if (python.is_absolute() && fs::exists(python, error))
      return python.parent_path().parent_path();
    begin = end + 1;
  }
  return {};
}

} // namespace

std::vector<Candidate> candidatesFor(CudaLibrary which,
                                     const SearchPlaces &places,
                                     std::vector<std::string> &folders) {
  Search search(which, folders);
  search.lookInToolkit(places.variable("FSDPQ_CUDA_PATH"));
  // The driver belongs to the system: it is part of no toolkit and no wheel.
  const bool isDriver = which == CudaLibrary::Driver;
  if (!isDriver)
    search.lookInToolkit(places.variable("CUDA_HOME"));
  if (places.asksLoader)
    search.askLoader();
  if (isDriver)
    return search.result;

  search.lookInToolkit(places.toolkit);
  if (const std::string environment = places.variable("VIRTUAL_ENV");
      !environment.empty())
    search.lookInPython(environment);
  if (const fs::path root = pythonRoot(places.variable("PATH")); !root.empty())
    search.lookInPython(root);
  // What tools/setup.sh fetches where there is no toolkit.
  const std::string cache = places.variable("XDG_CACHE_HOME");
  const std::string home = places.variable("HOME");
  if (!home.empty()) {
    search.lookInPython(fs::path(home) / ".local");
    search.lookInToolkit(
        (cache.empty() ? fs::path(home) / ".cache" : fs::path(cache)) /
        "fsdpq" / "cuda");
  }
  return search.result;
}

} // namespace fsdpq::rt
