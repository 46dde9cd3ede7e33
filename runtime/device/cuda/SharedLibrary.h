//===- SharedLibrary.h - Libraries found at run time ------------*- C++ -*-===//
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// NVIDIA's libraries, loaded with dlopen so that one program runs everywhere.
enum class CudaLibrary { Driver, Nvrtc, CublasLt, Nccl };

/// A loaded library. Never unloaded.
class SharedLibrary {
public:
  /// Searched in $FSDPQ_CUDA_PATH, $CUDA_HOME, where the loader looks, /usr/local/cuda
  /// and a Python virtual environment's site-packages/nvidia/*/lib ($VIRTUAL_ENV, then
  /// the python3 on PATH), newest version first. Error 4040 (BadInput) if it is
  /// found nowhere or cannot be loaded, saying what was tried and how to get it.
  static const SharedLibrary &get(CudaLibrary which);

  /// Error 4041 if there is no such symbol: the library is too old.
  void *symbol(const char *name) const;
  template <typename Function>
  Function function(const char *name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  const std::string &path() const { return path_; }

private:
  SharedLibrary(void *handle, std::string path)
      : handle(handle), path_(std::move(path)) {}
  void *handle;
  std::string path_;
};

} // namespace fsdpq::rt
