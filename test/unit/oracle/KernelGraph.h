//===- KernelGraph.h - Runs a function of calls and products ----*- C++ -*-===//
//
// Plans store parameters in f32. This interprets what the kernel phase makes of
// a function directly, so a function may be f64 throughout. Kernels are
// compiled and run as a plan's are; kern.gemm is computed by its definition.
// Values are values: a call that updates a destination in place works on a copy,
// except for gradients and ports, which are updated where they are. A kern.empty
// is filled with NaN, so nothing can lean on what it happens to hold.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Fsdp/Fsdp.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Tfm/Tfm.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fsdpq::test {

class KernelGraph {
public:
  /// Compiles the kernels of `architecture`, whose parameters are f64 and get
  /// places one after the other. `failed` tells whether that went wrong.
  explicit KernelGraph(tfm::ArchitectureOp architecture);
  bool failed() const { return !jit; }

  /// All parameters, and the sums that a run adds their gradients to.
  std::vector<double> parameters, gradients;
  /// Where a parameter begins, and its number of elements.
  std::pair<size_t, size_t> place(StringRef parameter) const {
    return places.at(parameter.str());
  }

  /// A function's argument: exactly one is not empty.
  struct Argument {
    std::vector<double> f64;
    std::vector<int32_t> i32;
  };
  /// Runs `function` with every step scalar 1. Gives the port "loss", which
  /// starts at 0.
  double run(tfm::FuncOp function, const std::vector<Argument> &arguments);

private:
  /// Where a value is. `isState`: calls update it in place.
  struct Place {
    char *data;
    bool isState;
  };

  void runCall(kern::CallOp call);
  void runGemm(kern::GemmOp gemm);
  Place parameterPlace(std::vector<double> &values, ArrayAttr names);
  char *allocate(size_t bytes, char fill);
  /// The buffer a result is written to, given its destination.
  Place destination(Value out);
  static size_t bytesOf(Value value);
  static int64_t valueOf(kern::ExtentAttr extent);

  tfm::ArchitectureOp architecture;
  std::map<std::string, std::pair<size_t, size_t>> places;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<std::unique_ptr<char[]>> buffers;
  llvm::DenseMap<Value, Place> values;
  double loss = 0;
};

} // namespace fsdpq::test
