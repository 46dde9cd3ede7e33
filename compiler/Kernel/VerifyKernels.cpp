//===- VerifyKernels.cpp - kern-verify ------------------------------------===//

#include "compiler/Kernel/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/Kern/Kern.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

namespace fsdpq {
#define GEN_PASS_DEF_KERNVERIFYKERNELS
#include "compiler/Kernel/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct VerifyKernelsPass
    : fsdpq::impl::KernVerifyKernelsBase<VerifyKernelsPass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      for (auto function : architecture.getBody().getOps<FunctionOpInterface>())
        for (Operation &op : function.getFunctionBody().front())
          if (!isa<tfm::ReturnOp, tfm::StackOp, tfm::StackGradOp,
                   tfm::ChunkLoopOp, kern::EmptyOp, kern::PortOp, kern::CallOp,
                   kern::GemmOp, kern::CopyOp, kern::FillOp>(op) &&
              op.getName().getDialectNamespace() !=
                  fsdp::FsdpDialect::getDialectNamespace())
            report(&op) << "the operation was not outlined";
      llvm::StringSet<> called;
      architecture.walk([&](kern::CallOp call) { called.insert(call.getCallee()); });
      for (auto kernel : architecture.getBody().getOps<kern::FuncOp>())
        if (!called.contains(kernel.getSymName()))
          report(kernel) << "@" << kernel.getSymName() << " is never called";
    }
  }

private:
  InFlightDiagnostic report(Operation *op) {
    signalPassFailure();
    return op->emitOpError("[FSDPQ-0490] after the kernel phase: ");
  }
};
} // namespace
