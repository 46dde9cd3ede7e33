//===- SerializePass.cpp - exec-serialize ---------------------------------===//

#include "compiler/Target/Plan/BuildPlan.h"
#include "compiler/Target/Plan/Passes.h"

#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/ToolOutputFile.h"

namespace fsdpq {
#define GEN_PASS_DEF_EXECSERIALIZE
#include "compiler/Target/Plan/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct SerializePass : fsdpq::impl::ExecSerializeBase<SerializePass> {
  using ExecSerializeBase::ExecSerializeBase;

  void runOnOperation() override {
    auto plans = getOperation().getOps<exec::PlanOp>();
    if (output.empty() || !llvm::hasSingleElement(plans)) {
      getOperation().emitError("[FSDPQ-0601] exec-serialize needs an output "
                               "file and a module with one exec.plan");
      return signalPassFailure();
    }
    FailureOr<BuiltPlan> built =
        buildPlan(*plans.begin(), {.target = target, .kernels = kernels});
    if (failed(built))
      return signalPassFailure();
    std::error_code error;
    llvm::ToolOutputFile file(output, error, llvm::sys::fs::OF_None);
    if (error) {
      getOperation().emitError("[FSDPQ-0602] cannot write '")
          << output << "': " << error.message();
      return signalPassFailure();
    }
    file.os().write(reinterpret_cast<const char *>(built->bytes.data()),
                    built->bytes.size());
    file.keep();
  }
};
} // namespace
