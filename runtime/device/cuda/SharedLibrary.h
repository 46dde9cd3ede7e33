//===- SharedLibrary.h - Libraries found at run time ------------*- C++ -*-===//
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

struct SearchPlaces;

/// NVIDIA's libraries, loaded with dlopen so that one program runs everywhere.
enum class CudaLibrary { Driver, Nvrtc, CublasLt, Nccl };

/// A loaded library. Never unloaded.
class SharedLibrary {
public:
  /// Searched in $FSDPQ_CUDA_PATH, $CUDA_HOME, where the loader looks, /usr/local/cuda,
  /// a Python virtual environment's site-packages/nvidia/*/lib ($VIRTUAL_ENV, then
  /// the python3 on PATH, then ~/.local) and what tools/setup.sh has fetched, newest
  /// version first; the driver by the first and third only. Error 4040 (BadInput) if
  /// it is found nowhere or cannot be loaded, saying what was tried and how to get it.
  /// Found once in a process; may be called by several threads.
  static const SharedLibrary &get(CudaLibrary which);

  /// The same, each time anew and in other places.
  static SharedLibrary load(CudaLibrary which, const SearchPlaces &places);

  /// Error 4041 if there is no such symbol: the library is too old.
  void *symbol(const char *name) const;
  template <typename Function>
  Function function(const char *name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  /// Where it was found.
  const std::string &path() const { return path_; }

private:
  SharedLibrary(void *handle, std::string path)
      : handle(handle), path_(std::move(path)) {}
  void *handle;
  std::string path_;
};

} // namespace fsdpq::rt
