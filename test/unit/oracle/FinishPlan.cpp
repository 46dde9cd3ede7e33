#include "test/unit/oracle/FinishPlan.h"

#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Pipelines/Registration.h"
#include "compiler/Target/Cpu/ObjectCompiler.h"
#include "compiler/Target/Plan/Serialize.h"
#include "dialects/Exec/Exec.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace fsdpq;

CompileResult fsdpq::test::finishPlan(const std::string &ir,
                                      const CompileOptions &options) {
  CompileResult result;
  DialectRegistry registry;
  registerCompilerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    result.diagnostics += diagnostic.str() + "\n";
  });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(ir, ParserConfig(&context));
  if (!module)
    return result;
  PassManager manager(&context);
  buildPhase(manager, "exec", options);
  if (failed(manager.run(*module)))
    return result;

  auto plan = *module->getOps<exec::PlanOp>().begin();
  SerializeOptions serialize;
  const auto target = cpu::TargetMachineOptions::host();
  serialize.target = target.cpu;
  SmallVector<kern::FuncOp> kernels(plan.getBody().getOps<kern::FuncOp>());
  auto compiled = cpu::compileKernels(kernels, target, "", 0);
  if (failed(compiled))
    return result;
  for (cpu::CompiledKernel &kernel : *compiled) {
    PlanKernel &finished = serialize.kernels[kernel.name];
    finished.hash = kernel.hash;
    finished.symbol = kernel.symbol;
    finished.text = kernel.text;
    finished.code = std::move(kernel.object);
  }
  result.plan = serializePlan(plan, serialize);
  result.succeeded = true;
  return result;
}
