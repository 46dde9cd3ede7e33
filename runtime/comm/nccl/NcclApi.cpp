#include "runtime/comm/nccl/NcclApi.h"

#include "runtime/device/cuda/SharedLibrary.h"

namespace fsdpq::rt {

const NcclApi &NcclApi::get() {
  static const NcclApi functions = [] {
    const SharedLibrary &library = SharedLibrary::get(CudaLibrary::Nccl);
    NcclApi api;
#define FSDPQ_LOAD(name) api.name = library.function<decltype(api.name)>(#name);
    FSDPQ_LOAD(ncclGetErrorString)
    FSDPQ_LOAD(ncclGetLastError)
    FSDPQ_LOAD(ncclGetUniqueId)
    FSDPQ_LOAD(ncclCommInitRank)
    FSDPQ_LOAD(ncclCommDestroy)
    FSDPQ_LOAD(ncclCommAbort)
    FSDPQ_LOAD(ncclCommGetAsyncError)
    FSDPQ_LOAD(ncclAllGather)
    FSDPQ_LOAD(ncclReduceScatter)
    FSDPQ_LOAD(ncclAllReduce)
#undef FSDPQ_LOAD
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
