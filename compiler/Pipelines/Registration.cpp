#include "compiler/Pipelines/Registration.h"
#include "compiler/Exec/Passes.h"
#include "compiler/Fuse/Passes.h"
#include "compiler/Grad/Passes.h"
#include "compiler/Kernel/Passes.h"
#include "compiler/Model/Passes.h"
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Shard/Passes.h"
#include "compiler/Target/Cpu/Passes.h"
#include "compiler/Target/Cuda/Passes.h"
#include "compiler/Target/Plan/Passes.h"
#include "dialects/Exec/Exec.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/Kern/Kern.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

void fsdpq::registerCompilerDialects(DialectRegistry &registry) {
  cpu::registerCpuDialects(registry);
  registry.insert<qt::QTDialect, tfm::TfmDialect, fsdp::FsdpDialect,
                  kern::KernDialect, exec::ExecDialect>();
}

void fsdpq::registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registerCompilerDialects(registry);
}

void fsdpq::registerAllPasses() {
  registerFsdpqModelPasses();
  registerFsdpqGradPasses();
  registerFsdpqShardPasses();
  registerFsdpqFusePasses();
  registerFsdpqKernelPasses();
  registerFsdpqExecPasses();
  registerFsdpqTargetPlanPasses();
  cpu::registerCpuPasses();
  cuda::registerCudaPasses();
  registerPipelines();
}
