//===- CublasGemm.h - Products by cuBLASLt ----------------------*- C++ -*-===//
#pragma once

#include "runtime/device/cuda/DriverApi.h"
#include "runtime/device/cuda/GemmShape.h"

#include <list>
#include <memory>
#include <unordered_map>

namespace fsdpq::rt {

/// A handle of cuBLASLt for the context that is current. What was found out about
/// a shape is kept, for the latest `mostShapes`.
class CublasGemm {
public:
  CublasGemm();
  ~CublasGemm();
  CublasGemm(const CublasGemm &) = delete;
  CublasGemm &operator=(const CublasGemm &) = delete;

  /// k > 0. Error 4004: types that there is no GEMM for.
  void run(const GemmCall &call, CUstream stream);

private:
  struct Ready {
    GemmShape shape;
    GemmDescription description;
    cublasLtMatmulAlgo_t algorithm;
  };
  struct Hash {
    size_t operator()(const GemmShape &shape) const { return shape.hash(); }
  };

  static constexpr size_t mostShapes = 4096;

  const Ready &find(const GemmCall &call);
  Ready prepare(const GemmShape &shape, const GemmCall &call) const;
  cublasStatus_t multiply(const Ready &ready, const GemmCall &call,
                          CUstream stream) const;

  const CublasLt &library;
  cublasLtHandle_t handle;

  std::list<Ready> latest; ///< the one used last first
  std::unordered_map<GemmShape, std::list<Ready>::iterator, Hash> known;
};

} // namespace fsdpq::rt
