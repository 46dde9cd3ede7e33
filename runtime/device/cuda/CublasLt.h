//===- CublasLt.h - cuBLASLt's functions ------------------------*- C++ -*-===//
#pragma once

#include "runtime/support/Error.h"

#include <cublasLt.h>
#include <string>

namespace fsdpq::rt {

#define FSDPQ_CUBLASLT_FUNCTIONS(F)                                            \
  F(cublasLtGetStatusName)                                                     \
  F(cublasLtGetVersion)                                                        \
  F(cublasLtCreate)                                                            \
  F(cublasLtDestroy)                                                           \
  F(cublasLtMatmul)                                                            \
  F(cublasLtMatmulAlgoGetHeuristic)                                            \
  F(cublasLtMatmulAlgoCheck)                                                   \
  F(cublasLtMatmulDescInit_internal)                                           \
  F(cublasLtMatmulDescSetAttribute)                                            \
  F(cublasLtMatrixLayoutInit_internal)                                         \
  F(cublasLtMatmulPreferenceInit_internal)                                     \
  F(cublasLtMatmulPreferenceSetAttribute)

/// Found in libcublasLt.so once in a process.
struct CublasLt {
  /// Error 4040 without the library, 4041 if it is too old.
  static const CublasLt &get();

#define FSDPQ_DECLARE(name) decltype(&::name) name;
  FSDPQ_CUBLASLT_FUNCTIONS(FSDPQ_DECLARE)
#undef FSDPQ_DECLARE

  /// Error 4005, or 4002 where memory ran out, for what failed "in a GEMM of ...".
  void check(cublasStatus_t status, const std::string &where) const;
};

} // namespace fsdpq::rt
