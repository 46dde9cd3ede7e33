//===- KernToCuda.cpp - kern-to-cuda --------------------------------------===//

#include "compiler/Target/Cuda/Emission.h"
#include "compiler/Target/Cuda/Passes.h"

namespace fsdpq::cuda {
#define GEN_PASS_DEF_KERNTOCUDA
#include "compiler/Target/Cuda/Passes.h.inc"
} // namespace fsdpq::cuda

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

namespace {
struct KernToCudaPass : fsdpq::cuda::impl::KernToCudaBase<KernToCudaPass> {
  using KernToCudaBase::KernToCudaBase;

  void runOnOperation() override {
    auto architecture = Architecture::parse(arch);
    if (!architecture) {
      getOperation()->emitError("[FSDPQ-0511] unknown GPU architecture '")
          << arch << "'; known: " << Architecture::knownNames();
      return signalPassFailure();
    }
    bool hasFailed = false;
    getOperation()->walk([&](kern::FuncOp kernel) {
      auto text = emitKernel(kernel, *architecture);
      if (failed(text)) {
        hasFailed = true;
        return;
      }
      const LaunchShape &launch = text->launch;
      llvm::outs() << "// ==== " << kernel.getSymName()
                   << "\n// launch: threads = " << launch.threads
                   << ", items a block = " << launch.itemsPerBlock
                   << ", shared bytes = " << launch.sharedBytes
                   << ", blocks a processor = " << launch.blocksPerProcessor
                   << "\n"
                   << text->text;
    });
    llvm::outs().flush();
    if (hasFailed)
      signalPassFailure();
  }
};
} // namespace
