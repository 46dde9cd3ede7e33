#include "runtime/comm/nccl/NcclApi.h"

#include "runtime/device/cuda/SharedLibrary.h"

namespace fsdpq::rt {

#define FSDPQ_QUOTED(name) #name
#define FSDPQ_LOAD(name)                                                       \
  api.name = library.function<decltype(api.name)>(FSDPQ_QUOTED(name));

const NcclApi &NcclApi::get() {
  static const NcclApi functions = [] {
    const SharedLibrary &library = SharedLibrary::get(CudaLibrary::Nccl);
    NcclApi api;
    FSDPQ_NCCL_FUNCTIONS(FSDPQ_LOAD)
    return api;
  }();
  return functions;
}

std::string NcclApi::text(ncclResult_t result) const {
  std::string text = ncclGetErrorString(result);
  if (const char *last = ncclGetLastError(nullptr); last && *last)
    text += std::string(" (") + last + ")";
  return text;
}

} // namespace fsdpq::rt
