//===- CublasLt.h - cuBLASLt's functions ------------------------*- C++ -*-===//
//
// What is used of cublasLt.h, declared here: the header comes with a library of
// half a gigabyte, which building fsdpq should not need. Numbers and layouts are
// the library's binary interface; test/unit/device/HeadersTest.cpp compares them with
// the header where there is one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/support/Error.h"

#include <cstddef>
#include <cstdint>
#include <cuda.h>
#include <string>

namespace fsdpq::rt {

enum cublasStatus_t : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};
enum cublasComputeType_t : int {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
};
enum cudaDataType_t : int {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16BF = 14,
};
enum cublasOperation_t : int {
  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,
};
enum cublasLtMatmulDescAttributes_t : int {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
};
enum cublasLtMatmulPreferenceAttributes_t : int {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
};
enum cublasLtReductionScheme_t : uint32_t {
  CUBLASLT_REDUCTION_SCHEME_INPLACE = 1,
  CUBLASLT_REDUCTION_SCHEME_MASK = 7,
};

using cublasLtHandle_t = struct cublasLtContext *;
struct cublasLtMatrixLayoutOpaque_t {
  uint64_t data[8];
};
struct cublasLtMatmulDescOpaque_t {
  uint64_t data[32];
};
struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t data[8];
};
struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};
using cublasLtMatrixLayout_t = cublasLtMatrixLayoutOpaque_t *;
using cublasLtMatmulDesc_t = cublasLtMatmulDescOpaque_t *;
using cublasLtMatmulPreference_t = cublasLtMatmulPreferenceOpaque_t *;

/// Found in libcublasLt.so once in a process.
struct CublasLt {
  /// Error 4040 without the library, 4041 if it is too old.
  static const CublasLt &get();

  const char *(*cublasLtGetStatusName)(cublasStatus_t);
  cublasStatus_t (*cublasLtCreate)(cublasLtHandle_t *);
  cublasStatus_t (*cublasLtDestroy)(cublasLtHandle_t);
  cublasStatus_t (*cublasLtMatmul)(
      cublasLtHandle_t, cublasLtMatmulDesc_t, const void *alpha, const void *a,
      cublasLtMatrixLayout_t, const void *b, cublasLtMatrixLayout_t,
      const void *beta, const void *c, cublasLtMatrixLayout_t, void *d,
      cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *workspace,
      size_t workspaceBytes, CUstream);
  cublasStatus_t (*cublasLtMatmulAlgoGetHeuristic)(
      cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t a,
      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
      cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t, int most,
      cublasLtMatmulHeuristicResult_t *, int *count);
  cublasStatus_t (*cublasLtMatmulDescInit_internal)(cublasLtMatmulDesc_t,
                                                    size_t bytes,
                                                    cublasComputeType_t,
                                                    cudaDataType_t scale);
  cublasStatus_t (*cublasLtMatmulDescSetAttribute)(
      cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void *value,
      size_t bytes);
  cublasStatus_t (*cublasLtMatrixLayoutInit_internal)(
      cublasLtMatrixLayout_t, size_t bytes, cudaDataType_t, uint64_t rows,
      uint64_t columns, int64_t pitch);
  cublasStatus_t (*cublasLtMatmulPreferenceInit_internal)(
      cublasLtMatmulPreference_t, size_t bytes);
  cublasStatus_t (*cublasLtMatmulPreferenceSetAttribute)(
      cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
      const void *value, size_t bytes);

  /// Error 4005, or 4002 where memory ran out, for what failed "in a GEMM of ...".
  void check(cublasStatus_t status, const std::string &where) const;
};

} // namespace fsdpq::rt
