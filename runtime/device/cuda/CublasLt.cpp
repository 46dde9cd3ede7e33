#include "runtime/device/cuda/CublasLt.h"

#include "runtime/device/cuda/SharedLibrary.h"

namespace fsdpq::rt {

const CublasLt &CublasLt::get() {
  static const CublasLt functions = [] {
    const SharedLibrary &library = SharedLibrary::get(CudaLibrary::CublasLt);
    CublasLt api;
#define FSDPQ_LOAD(name) api.name = library.function<decltype(api.name)>(#name);
    FSDPQ_LOAD(cublasLtGetStatusName)
    FSDPQ_LOAD(cublasLtCreate)
    FSDPQ_LOAD(cublasLtDestroy)
    FSDPQ_LOAD(cublasLtMatmul)
    FSDPQ_LOAD(cublasLtMatmulAlgoGetHeuristic)
    FSDPQ_LOAD(cublasLtMatmulDescInit_internal)
    FSDPQ_LOAD(cublasLtMatmulDescSetAttribute)
    FSDPQ_LOAD(cublasLtMatrixLayoutInit_internal)
    FSDPQ_LOAD(cublasLtMatmulPreferenceInit_internal)
    FSDPQ_LOAD(cublasLtMatmulPreferenceSetAttribute)
#undef FSDPQ_LOAD
    return api;
  }();
  return functions;
}

void CublasLt::check(cublasStatus_t status, const std::string &where) const {
  if (status == CUBLAS_STATUS_SUCCESS)
    return;
  const std::string name = cublasLtGetStatusName(status);
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    throw Error(4002, ExitCode::DoesNotFit,
                "cuBLASLt has no memory " + where + ": " + name, "",
                "give a smaller --memory-budget, batch or context length");
  throw Error(4005, ExitCode::RunFailure,
              "cuBLASLt failed " + where + ": " + name);
}

} // namespace fsdpq::rt
