#include "compiler/Target/Plan/BuildPlan.h"
#include "compiler/Target/Cpu/ObjectCompiler.h"
#include "compiler/Target/Plan/Serialize.h"

using namespace mlir;
using namespace fsdpq;

FailureOr<BuiltPlan> fsdpq::buildPlan(exec::PlanOp plan,
                                      const BuildPlanOptions &options) {
  BuiltPlan built;
  cpu::TargetMachineOptions target = cpu::TargetMachineOptions::host();
  SerializeOptions serialize;
  serialize.target = target.cpu;
  serialize.metadata["architecture"] = plan.getSymName().str();
  SmallVector<kern::FuncOp> kernels(plan.getBody().getOps<kern::FuncOp>());
  built.kernels = kernels.size();
  if (options.kernels) {
    auto compiled = cpu::compileKernels(kernels, target, options.kernelCache,
                                        options.threads);
    if (failed(compiled))
      return failure();
    for (cpu::CompiledKernel &kernel : *compiled) {
      built.kernelsFromCache += kernel.fromCache;
      serialize.kernels[kernel.name] = {kernel.hash, kernel.text,
                                        std::move(kernel.object)};
    }
  }
  built.bytes = serializePlan(plan, serialize);
  return built;
}
