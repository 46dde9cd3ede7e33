// What CublasLt.h and NcclApi.h declare against NVIDIA's own headers, while this is
// compiled.
#include "runtime/comm/nccl/NcclApi.h"
#include "runtime/device/cuda/CublasLt.h"

#include <cstddef>
#include <cublasLt.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <type_traits>

namespace own = fsdpq::rt;

#define SAME_NUMBER(name)                                                      \
  static_assert(static_cast<long>(own::name) == static_cast<long>(::name))
#define SAME_SIZE(type)                                                        \
  static_assert(sizeof(own::type) == sizeof(::type) &&                         \
                alignof(own::type) == alignof(::type))

SAME_NUMBER(CUBLAS_STATUS_SUCCESS);
SAME_NUMBER(CUBLAS_STATUS_ALLOC_FAILED);
SAME_NUMBER(CUBLAS_STATUS_INVALID_VALUE);
SAME_NUMBER(CUBLAS_STATUS_EXECUTION_FAILED);
SAME_NUMBER(CUBLAS_STATUS_NOT_SUPPORTED);
SAME_NUMBER(CUBLAS_COMPUTE_32F);
SAME_NUMBER(CUBLAS_COMPUTE_64F);
SAME_NUMBER(CUDA_R_32F);
SAME_NUMBER(CUDA_R_64F);
SAME_NUMBER(CUDA_R_16BF);
SAME_NUMBER(CUBLAS_OP_N);
SAME_NUMBER(CUBLAS_OP_T);
SAME_NUMBER(CUBLASLT_MATMUL_DESC_TRANSA);
SAME_NUMBER(CUBLASLT_MATMUL_DESC_TRANSB);
SAME_NUMBER(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME_NUMBER(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME_NUMBER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME_NUMBER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME_NUMBER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME_NUMBER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME_NUMBER(CUBLASLT_REDUCTION_SCHEME_INPLACE);
SAME_NUMBER(CUBLASLT_REDUCTION_SCHEME_MASK);
SAME_SIZE(cublasStatus_t);
SAME_SIZE(cublasComputeType_t);
SAME_SIZE(cudaDataType_t);
SAME_SIZE(cublasOperation_t);
SAME_SIZE(cublasLtMatrixLayoutOpaque_t);
SAME_SIZE(cublasLtMatmulDescOpaque_t);
SAME_SIZE(cublasLtMatmulPreferenceOpaque_t);
SAME_SIZE(cublasLtMatmulAlgo_t);
SAME_SIZE(cublasLtMatmulHeuristicResult_t);
#define SAME_PLACE(member)                                                     \
  static_assert(offsetof(own::cublasLtMatmulHeuristicResult_t, member) ==      \
                offsetof(::cublasLtMatmulHeuristicResult_t, member))
SAME_PLACE(workspaceSize);
SAME_PLACE(state);
SAME_PLACE(wavesCount);

SAME_NUMBER(ncclSuccess);
SAME_NUMBER(ncclInternalError);
SAME_NUMBER(ncclInProgress);
SAME_NUMBER(ncclUint8);
SAME_NUMBER(ncclFloat32);
SAME_NUMBER(ncclFloat64);
SAME_NUMBER(ncclSum);
SAME_SIZE(ncclResult_t);
SAME_SIZE(ncclDataType_t);
SAME_SIZE(ncclRedOp_t);
SAME_SIZE(ncclUniqueId);

namespace {

/// How many parameters a function takes.
template <typename Result, typename... Parameters>
constexpr size_t count(Result (*)(Parameters...)) {
  return sizeof...(Parameters);
}

#define SAME_PARAMETERS(table, name)                                           \
  static_assert(count(decltype(own::table::name)(nullptr)) ==                  \
                count(decltype (&::name)(nullptr)))

SAME_PARAMETERS(CublasLt, cublasLtGetStatusName);
SAME_PARAMETERS(CublasLt, cublasLtCreate);
SAME_PARAMETERS(CublasLt, cublasLtDestroy);
SAME_PARAMETERS(CublasLt, cublasLtMatmul);
SAME_PARAMETERS(CublasLt, cublasLtMatmulAlgoGetHeuristic);
SAME_PARAMETERS(CublasLt, cublasLtMatmulDescInit_internal);
SAME_PARAMETERS(CublasLt, cublasLtMatmulDescSetAttribute);
SAME_PARAMETERS(CublasLt, cublasLtMatrixLayoutInit_internal);
SAME_PARAMETERS(CublasLt, cublasLtMatmulPreferenceInit_internal);
SAME_PARAMETERS(CublasLt, cublasLtMatmulPreferenceSetAttribute);
SAME_PARAMETERS(NcclApi, ncclGetErrorString);
SAME_PARAMETERS(NcclApi, ncclGetLastError);
SAME_PARAMETERS(NcclApi, ncclGetUniqueId);
SAME_PARAMETERS(NcclApi, ncclCommInitRank);
SAME_PARAMETERS(NcclApi, ncclCommDestroy);
SAME_PARAMETERS(NcclApi, ncclCommAbort);
SAME_PARAMETERS(NcclApi, ncclCommGetAsyncError);
SAME_PARAMETERS(NcclApi, ncclAllGather);
SAME_PARAMETERS(NcclApi, ncclReduceScatter);
SAME_PARAMETERS(NcclApi, ncclAllReduce);

} // namespace

TEST(Headers, SayWhatIsDeclaredHere) {} // or this would not have been compiled
