#include "runtime/device/cuda/SharedLibrary.h"

#include "runtime/device/cuda/LibrarySearch.h"
#include "runtime/support/Error.h"

#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <mutex>
#include <optional>

namespace fsdpq::rt {

/// What the loader says of a library that it found by its name.
static std::string fileOf(void *handle, const std::string &name) {
  link_map *map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name &&
      *map->l_name)
    return map->l_name;
  return name;
}

/// NVRTC asks for its other half by name alone, which the loader finds beside it
/// only if it is loaded already.
static void loadCompanions(const std::string &nvrtc) {
  std::error_code error;
  for (std::filesystem::directory_iterator
           entry(std::filesystem::path(nvrtc).parent_path(), error),
       end;
       !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with("libnvrtc-builtins.so."))
      ::dlopen(entry->path().c_str(), RTLD_NOW | RTLD_LOCAL);
}

SharedLibrary SharedLibrary::load(CudaLibrary which,
                                  const SearchPlaces &places) {
  std::vector<std::string> folders;
  std::string refusals;
  for (const Candidate &candidate : candidatesFor(which, places, folders)) {
    if (void *handle =
            ::dlopen(candidate.name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      const std::string path = fileOf(handle, candidate.name);
      if (which == CudaLibrary::Nvrtc)
        loadCompanions(path);
      return {handle, path};
    }
    // A name that the loader does not know is no news; a file that it refuses is.
    if (const char *reason = ::dlerror(); candidate.isFile && reason)
      refusals += std::string(refusals.empty() ? "" : "; ") + reason;
  }

  const LibraryNames &names = namesOf(which);
  std::string looked;
  for (const std::string &folder : folders)
    looked += (looked.empty() ? "" : ", ") + folder;
  const std::string title = names.title;
  const std::string file = " (" + std::string(names.sonames.front()) + ")";
  throw Error(4040, ExitCode::BadInput,
              refusals.empty()
                  ? title + file + " is not to be found"
                  : title + file + " cannot be loaded: " + refusals,
              "looked in " + looked, names.remedy);
}

const SharedLibrary &SharedLibrary::get(CudaLibrary which) {
  static std::mutex mutex;
  static std::array<std::optional<SharedLibrary>, 4> libraries;
  std::lock_guard lock(mutex);
  std::optional<SharedLibrary> &library = libraries[static_cast<size_t>(which)];
  if (!library)
    library = load(which, SearchPlaces::own());
  return *library;
}

void *SharedLibrary::symbol(const char *name) const {
  if (void *found = ::dlsym(handle, name))
    return found;
  throw Error(4041, ExitCode::BadInput,
              path_ + " has no function '" + name + "'", "",
              "this version is too old: install a newer one");
}

} // namespace fsdpq::rt
