//===- GemmShape.h - A product and how cuBLASLt computes it -----*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cuda/CublasLt.h"

#include <cstdint>
#include <string>

namespace fsdpq::rt {

/// All that the choice of an algorithm depends on.
struct GemmShape {
  int64_t m, n, k, lda, ldb, ldc;
  uint64_t workspaceBytes;
  plan::DType dtype, outDtype;
  bool transA, transB, overwrites; ///< beta = 0
  /// Powers of two, at most 256, that the addresses are multiples of.
  uint16_t alignA, alignB, alignC;

  explicit GemmShape(const GemmCall &call);
  bool operator==(const GemmShape &) const = default;
  size_t hash() const;
  /// "bf16>f32 nt 4096x14336x4096 ld 4096,4096,14336 new align 256,256,256
  /// workspace 33554432": messages name shapes so.
  std::string text() const;
};

/// A product as cuBLASLt sees it. The library computes by columns: it is given
/// B and A, and computes the transpose of C.
struct GemmDescription {
  GemmDescription(const CublasLt &library, const GemmShape &shape);

  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t a, b, c; ///< of the own A, B and C
};

/// How the library proposes to compute the product. Sums are never taken by atomic
/// additions: equal calls give equal bits. Error 4004 if it cannot compute it.
cublasLtMatmulAlgo_t chooseAlgorithm(const CublasLt &library,
                                     cublasLtHandle_t handle,
                                     const GemmShape &shape,
                                     const GemmDescription &description);

} // namespace fsdpq::rt
