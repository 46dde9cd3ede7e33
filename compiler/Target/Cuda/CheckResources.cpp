//===- CheckResources.cpp - kern-check-resources --------------------------===//

#include "compiler/Target/Cuda/KernelCompiler.h"
#include "compiler/Target/Cuda/Passes.h"
#include "dialects/Support/Remarks.h"

namespace fsdpq::cuda {
#define GEN_PASS_DEF_KERNCHECKRESOURCES
#include "compiler/Target/Cuda/Passes.h.inc"
} // namespace fsdpq::cuda

using namespace mlir;
using namespace fsdpq;

/// What a kernel needs, and what of that is a loss.
static void remarkOn(kern::FuncOp kernel, const cuda::CompiledKernel &compiled) {
  const cuda::Resources &resources = compiled.resources;
  const unsigned shared =
      compiled.launch.sharedBytes + resources.staticSharedBytes;
  remarkAnalysis(kernel.getLoc(), RemarkId::KernelResources)
      << ("@" + compiled.name + ": " + Twine(compiled.launch.threads) +
          " threads of " + Twine(resources.registers) + " registers, " +
          Twine(shared) + " bytes of shared memory")
             .str()
      << remark::metric("registers", resources.registers)
      << remark::metric("shared", shared)
      << remark::metric("code", compiled.cubin.size());
  if (resources.spillBytes > 0)
    remarkMissed(kernel.getLoc(), RemarkId::KernelResources)
        << "@" + compiled.name +
               " spills: registers do not hold all that is alive"
        << remark::metric("spilled", resources.spillBytes);
}

namespace {
struct CheckResourcesPass
    : cuda::impl::KernCheckResourcesBase<CheckResourcesPass> {
  using KernCheckResourcesBase::KernCheckResourcesBase;

  void runOnOperation() override {
    std::optional<cuda::Architecture> architecture =
        cuda::Architecture::parse(arch.getValue());
    if (!architecture) {
      getOperation()->emitError("[FSDPQ-0511] unknown GPU architecture '")
          << arch << "'; known: " << cuda::Architecture::knownNames();
      return signalPassFailure();
    }
    // The same names may stand in several architectures.
    bool hasFailed = false;
    getOperation()->walk([&](Operation *scope) {
      if (!scope->hasTrait<OpTrait::SymbolTable>())
        return;
      SmallVector<kern::FuncOp> kernels;
      for (Region &region : scope->getRegions())
        llvm::append_range(kernels, region.getOps<kern::FuncOp>());
      auto compiled =
          cuda::compileKernels(kernels, *architecture, {.cacheDir = cache});
      hasFailed |= failed(compiled);
      if (failed(compiled))
        return;
      for (auto [kernel, result] : llvm::zip(kernels, *compiled))
        remarkOn(kernel, result);
    });
    if (hasFailed)
      signalPassFailure();
  }
};
} // namespace
