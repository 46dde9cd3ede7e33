//===- CublasGemm.h - Products by cuBLASLt ----------------------*- C++ -*-===//
#pragma once

#include "runtime/device/cuda/DriverApi.h"
#include "runtime/device/cuda/GemmAlgorithms.h"

#include <list>
#include <memory>
#include <unordered_map>

namespace fsdpq::rt {

/// A handle of cuBLASLt for the context that is current. What was found out about
/// a shape is kept, for the latest `mostShapes`.
class CublasGemm {
public:
  CublasGemm(const DriverApi &driver, const std::string &gpu);
  ~CublasGemm();
  CublasGemm(const CublasGemm &) = delete;
  CublasGemm &operator=(const CublasGemm &) = delete;

  /// k > 0. Error 4004: types that there is no GEMM for.
  void run(const GemmCall &call, CUstream stream);

  /// Whether products that overwrite C are tried with several algorithms when
  /// they are first computed, which waits for the stream.
  void setTuning(bool isOn) { tunes = isOn; }

  std::string exportChoices() const { return algorithms.exportChoices(); }
  bool importChoices(const std::string &json);

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

  const Ready &find(const GemmCall &call, CUstream stream);
  Ready prepare(const GemmShape &shape, const GemmCall &call, CUstream stream);
  cublasLtMatmulAlgo_t
  fastest(const std::vector<cublasLtMatmulAlgo_t> &candidates, Ready &ready,
          const GemmCall &call, CUstream stream);
  cublasStatus_t multiply(const Ready &ready, const GemmCall &call,
                          CUstream stream) const;

  const DriverApi &driver;
  const CublasLt &library;
  cublasLtHandle_t handle;
  GemmAlgorithms algorithms;
  bool tunes = false;

  std::list<Ready> latest; ///< the one used last first
  std::unordered_map<GemmShape, std::list<Ready>::iterator, Hash> known;
};

} // namespace fsdpq::rt
