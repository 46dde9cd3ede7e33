//===- Outline.cpp - kern-outline -----------------------------------------===//

#include "compiler/Kernel/Outliner.h"
#include "compiler/Kernel/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fsdpq {
#define GEN_PASS_DEF_KERNOUTLINE
#include "compiler/Kernel/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct OutlinePass : fsdpq::impl::KernOutlineBase<OutlinePass> {
  using KernOutlineBase::KernOutlineBase;

  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      Outliner outliner(architecture, rowTokens);
      SmallVector<FunctionOpInterface> functions(
          architecture.getBody().getOps<FunctionOpInterface>());
      for (FunctionOpInterface function : functions)
        if (failed(outliner.run(function)))
          return signalPassFailure();
      numKernels += outliner.getNumKernels();
    }
  }
};
} // namespace
