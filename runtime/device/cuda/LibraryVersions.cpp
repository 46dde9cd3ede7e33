#include "runtime/device/cuda/LibraryVersions.h"

#include "runtime/device/cuda/Nvrtc.h"

namespace fsdpq::rt {

// These have the same form in all versions, so no header is needed for them.

static std::string driverVersion(const SharedLibrary &library) {
  int number = 0; // 13020 is 13.2
  library.function<int (*)(int *)>("cuDriverGetVersion")(&number);
  return std::to_string(number / 1000) + "." +
         std::to_string(number % 1000 / 10);
}

static std::string cublasLtVersion(const SharedLibrary &library) {
  const size_t number = library.function<size_t (*)()>("cublasLtGetVersion")();
  return std::to_string(number / 10000) + "." +
         std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

static std::string ncclVersion(const SharedLibrary &library) {
  int number = 0; // 22703 is 2.27.3
  library.function<int (*)(int *)>("ncclGetVersion")(&number);
  return std::to_string(number / 10000) + "." +
         std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

std::string versionOf(CudaLibrary which) {
  const SharedLibrary &library = SharedLibrary::get(which);
  switch (which) {
  case CudaLibrary::Driver:
    return driverVersion(library);
  case CudaLibrary::Nvrtc:
    return nvrtcVersion();
  case CudaLibrary::CublasLt:
    return cublasLtVersion(library);
  case CudaLibrary::Nccl:
    break;
  }
  return ncclVersion(library);
}

} // namespace fsdpq::rt
