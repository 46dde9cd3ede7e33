//===- GemmAlgorithms.h - How cuBLASLt computes a product -------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cuda/CublasLt.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

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
  /// workspace 33554432": messages and files name shapes so.
  std::string text() const;
};

/// A product as cuBLASLt sees it. The library computes by columns: it is given
/// B and A, and computes the transpose of C.
struct GemmDescription {
  GemmDescription(const CublasLt &library, const GemmShape &shape);

  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t a, b, c; ///< of the own A, B and C
};

/// Algorithms that were chosen, and those that the library proposes. Sums are
/// never taken by atomic additions: equal calls give equal bits.
class GemmAlgorithms {
public:
  /// `gpu`: choices hold for GPUs of this name.
  GemmAlgorithms(const CublasLt &library, cublasLtHandle_t handle,
                 std::string gpu)
      : library(library), handle(handle), gpu(std::move(gpu)) {}

  static constexpr int mostProposals = 8;

  /// The library's, best first. Error 4004 if it cannot compute the product.
  std::vector<cublasLtMatmulAlgo_t>
  propose(const GemmShape &shape, const GemmDescription &description) const;

  /// The one that was chosen for the shape, if the library still takes it.
  const cublasLtMatmulAlgo_t *chosen(const GemmShape &shape,
                                     const GemmDescription &description) const;
  void choose(const GemmShape &shape, const cublasLtMatmulAlgo_t &algorithm);

  /// The choices as JSON, for other ranks and later runs.
  std::string exportChoices() const;
  /// Takes choices over; false, and nothing is taken, if they were made with
  /// another version of the library or for another GPU. Error 4009 (BadInput) for
  /// what is no list of choices.
  bool importChoices(const std::string &json);

private:
  const CublasLt &library;
  cublasLtHandle_t handle;
  std::string gpu;
  std::map<std::string, cublasLtMatmulAlgo_t> choices; ///< by a shape's text
};

} // namespace fsdpq::rt
