#include "runtime/device/cuda/DriverApi.h"

#include "runtime/device/cuda/SharedLibrary.h"

namespace fsdpq::rt {

#define FSDPQ_QUOTED(name) #name
// The name with its version, and so spelt as the library has it.
#define FSDPQ_LOAD(name)                                                       \
  api.name = library.function<decltype(api.name)>(FSDPQ_QUOTED(name));

static DriverApi load() {
  const SharedLibrary &library = SharedLibrary::get(CudaLibrary::Driver);
  DriverApi api;
  FSDPQ_DRIVER_FUNCTIONS(FSDPQ_LOAD)
  if (const CUresult result = api.cuInit(0); result != CUDA_SUCCESS)
    throw Error(
        4042, ExitCode::BadInput,
        "the CUDA driver cannot be used: " + api.text(result), library.path(),
        "`nvidia-smi` says more; $CUDA_VISIBLE_DEVICES may hide all GPUs");
  return api;
}

const DriverApi &DriverApi::get() {
  static const DriverApi api = load();
  return api;
}

std::string DriverApi::text(CUresult result) const {
  const char *name = nullptr, *meaning = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &meaning);
  if (!name)
    return "error " + std::to_string(result);
  return std::string(name) + (meaning ? " (" + std::string(meaning) + ")" : "");
}

bool endsContext(CUresult result) {
  switch (result) {
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_EXTERNAL_DEVICE:
    return true;
  default:
    return false;
  }
}

Error DriverApi::error(CUresult result, const std::string &action) const {
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return Error(4002, ExitCode::DoesNotFit,
                 "the GPU has no memory left: " + text(result) + " " + action,
                 "", "give a smaller --memory-budget, batch or context length");
  if (endsContext(result))
    return Error(
        4050, ExitCode::RunFailure,
        "work on the GPU failed: " + text(result) + ", seen " + action, "",
        "the instruction may be any that was given before this one: run "
        "again with FSDPQ_SYNC_LAUNCH=1, which names the kernel, or "
        "under compute-sanitizer");
  return Error(4050, ExitCode::RunFailure,
               "the GPU's driver failed " + action + ": " + text(result));
}

} // namespace fsdpq::rt
