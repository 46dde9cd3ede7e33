#include "compiler/Target/Plan/BuildPlan.h"
#include "compiler/Target/Cpu/ObjectCompiler.h"
#include "compiler/Target/Cuda/KernelCompiler.h"
#include "compiler/Target/KernelFiles.h"
#include "compiler/Target/Plan/Serialize.h"

using namespace mlir;
using namespace fsdpq;

FailureOr<std::optional<cuda::Architecture>>
fsdpq::parseTarget(StringRef target, Location place) {
  if (target == "cpu")
    return std::optional<cuda::Architecture>();
  std::optional<cuda::Architecture> architecture =
      cuda::Architecture::parse(std::string_view(target));
  if (!architecture)
    return mlir::emitError(place, "[FSDPQ-0605] unknown target '")
           << target << "'; known: cpu, " << cuda::Architecture::knownNames();
  return architecture;
}

static LogicalResult compileForCpu(exec::PlanOp plan,
                                   ArrayRef<kern::FuncOp> kernels,
                                   const BuildPlanOptions &options,
                                   SerializeOptions &serialize,
                                   BuiltPlan &built) {
  if (!options.overrideKernels.empty())
    return plan.emitError("[FSDPQ-0606] kernels of the CPU are made of the "
                          "kern functions: only CUDA texts can be replaced (")
           << options.overrideKernels << "); choose a GPU as the target";
  cpu::TargetMachineOptions target = cpu::TargetMachineOptions::host();
  serialize.target = target.cpu;
  if (!options.kernels)
    return success();
  auto compiled = cpu::compileKernels(kernels, target, options.kernelCache,
                                      options.threads);
  if (failed(compiled))
    return failure();
  std::vector<KernelFile> files;
  for (cpu::CompiledKernel &kernel : *compiled) {
    built.kernelsFromCache += kernel.fromCache;
    files.push_back({kernel.name + ".mlir", kernel.text + "\n"});
    PlanKernel &result = serialize.kernels[kernel.name];
    result.hash = kernel.hash;
    result.symbol = kernel.symbol;
    result.text = kernel.text;
    result.code = std::move(kernel.object);
  }
  if (options.dumpKernels.empty())
    return success();
  if (llvm::Error error = writeKernelFiles(options.dumpKernels, files))
    return plan.emitError(llvm::toString(std::move(error)));
  return success();
}

static LogicalResult compileForGpu(const cuda::Architecture &architecture,
                                   ArrayRef<kern::FuncOp> kernels,
                                   const BuildPlanOptions &options,
                                   SerializeOptions &serialize,
                                   BuiltPlan &built) {
  serialize.target = architecture.name;
  serialize.gemmWorkspace = gemmWorkspaceBytes;
  auto compiled = cuda::compileKernels(
      kernels, architecture,
      {.cacheDir = options.kernelCache,
       .dumpDir = options.dumpKernels,
       .overrideDir = options.overrideKernels,
       .threads = options.threads,
       .cubins = options.kernels});
  if (failed(compiled))
    return failure();
  for (cuda::CompiledKernel &kernel : *compiled) {
    built.kernelsFromCache += kernel.fromCache;
    PlanKernel &result = serialize.kernels[kernel.name];
    result.hash = std::move(kernel.hash);
    result.symbol = std::move(kernel.symbol);
    result.text = std::move(kernel.text);
    result.code = std::move(kernel.cubin);
    result.launch = std::move(kernel.launch);
    result.resources = std::move(kernel.resources);
  }
  return success();
}

FailureOr<BuiltPlan> fsdpq::buildPlan(exec::PlanOp plan,
                                      const BuildPlanOptions &options) {
  auto architecture = parseTarget(options.target, plan.getLoc());
  if (failed(architecture))
    return failure();
  BuiltPlan built;
  SerializeOptions serialize;
  serialize.metadata = options.metadata;
  serialize.metadata["architecture"] = plan.getSymName().str();
  SmallVector<kern::FuncOp> kernels(plan.getBody().getOps<kern::FuncOp>());
  built.kernels = kernels.size();
  if (failed(*architecture
                 ? compileForGpu(**architecture, kernels, options, serialize,
                                 built)
                 : compileForCpu(plan, kernels, options, serialize, built)))
    return failure();
  built.bytes = serializePlan(plan, serialize);
  return built;
}
