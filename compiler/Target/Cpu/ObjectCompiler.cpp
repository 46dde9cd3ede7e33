//===- ObjectCompiler.cpp - Kernels to relocatable objects ----------------===//
//
// A kernel is printed, and what is compiled is the printed text, in a context
// of its own: threads share nothing, and the hash covers all that the object
// depends on.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cpu/ObjectCompiler.h"

#include "compiler/Target/CodeCache.h"
#include "compiler/Target/Cpu/CodeGenerator.h"
#include "compiler/Target/Cpu/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/SHA256.h"

#include <atomic>
#include <thread>

using namespace mlir;
using namespace fsdpq;

static std::string print(kern::FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

static std::string computeHash(StringRef text,
                               const cpu::TargetMachineOptions &target) {
  llvm::SHA256 hasher;
  // FSDPQ_CPU_FINGERPRINT: hash of this folder's and the dialect's sources.
  for (StringRef part :
       {StringRef(LLVM_VERSION_STRING), StringRef(FSDPQ_CPU_FINGERPRINT),
        StringRef(target.cpu), StringRef(target.features), text}) {
    hasher.update(part);
    hasher.update(StringRef("\0", 1));
  }
  return llvm::toHex(hasher.final(), /*LowerCase=*/true);
}

/// Compiles `text`; what is wrong with it goes to `errors`.
static FailureOr<std::vector<uint8_t>>
compileText(StringRef text, const cpu::TargetMachineOptions &target,
            std::string &errors) {
  DialectRegistry registry;
  cpu::registerCpuDialects(registry);
  cpu::registerTranslations(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      errors += (errors.empty() ? "" : "; ") + diagnostic.str();
  });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    return failure();

  cpu::KernToLLVMOptions options;
  options.permutes = cpu::hasFeature(target, "avx512f");
  options.vectorBits = options.permutes                  ? 512
                       : cpu::hasFeature(target, "avx2") ? 256
                                                         : 128;
  PassManager passes(&context);
  passes.addPass(cpu::createKernToLLVM(options));
  if (failed(passes.run(*module)))
    return failure();
  return cpu::generateObject(*module, target);
}

FailureOr<std::vector<cpu::CompiledKernel>>
cpu::compileKernels(ArrayRef<kern::FuncOp> kernels,
                    const TargetMachineOptions &target, StringRef cacheDir,
                    unsigned threads) {
  std::vector<CompiledKernel> results(kernels.size());
  std::vector<std::string> errors(kernels.size());
  for (auto [index, result] : llvm::enumerate(results)) {
    kern::FuncOp kernel = kernels[index];
    result.name = result.symbol = kernel.getSymName().str();
    result.text = print(kernel);
    result.hash = computeHash(result.text, target);
  }

  CodeCache cache(cacheDir, ".o");
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t index; (index = next++) < results.size();) {
      CompiledKernel &result = results[index];
      if (auto object = cache.lookUp(result.hash)) {
        result.object = std::move(*object);
        result.fromCache = true;
        continue;
      }
      result.fromCache = false;
      auto object = compileText(result.text, target, errors[index]);
      if (failed(object)) {
        if (errors[index].empty())
          errors[index] = "kernel cannot be lowered for the CPU";
        continue;
      }
      result.object = std::move(*object);
      cache.insert(result.hash, result.object);
    }
  };
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> workers;
  for (size_t i = 1; i < std::min<size_t>(threads, kernels.size()); ++i)
    workers.emplace_back(work);
  work();
  for (std::thread &worker : workers)
    worker.join();

  bool hasFailed = false;
  for (auto [index, error] : llvm::enumerate(errors)) {
    if (error.empty())
      continue;
    kern::FuncOp kernel = kernels[index];
    mlir::emitError(kernel->getLoc(), "kernel @")
        << kernel.getSymName() << ": " << error;
    hasFailed = true;
  }
  if (hasFailed)
    return failure();
  return results;
}
