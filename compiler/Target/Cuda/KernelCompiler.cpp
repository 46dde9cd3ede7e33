//===- KernelCompiler.cpp - Kernels to cubins -----------------------------===//

#include "compiler/Target/Cuda/KernelCompiler.h"
#include "compiler/Target/Cuda/CubinCompiler.h"
#include "compiler/Target/Cuda/Emission.h"
#include "compiler/Target/KernelFiles.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

static constexpr StringRef suffix = ".cu";

/// An error whose first line is `text`'s; what follows becomes a note.
static void report(kern::FuncOp kernel, StringRef text) {
  auto [message, details] = text.split('\n');
  InFlightDiagnostic error = mlir::emitError(kernel->getLoc(), "kernel @")
                             << kernel.getSymName() << ": " << message;
  if (!details.trim().empty())
    error.attachNote() << details.trim();
}

static LogicalResult reportAll(ArrayRef<kern::FuncOp> kernels,
                               llvm::Error error) {
  if (!error)
    return success();
  return mlir::emitError(kernels.front()->getLoc(),
                         llvm::toString(std::move(error)));
}

static LogicalResult emitTexts(ArrayRef<kern::FuncOp> kernels,
                               const Architecture &architecture,
                               std::vector<CompiledKernel> &results) {
  bool hasFailed = false;
  for (kern::FuncOp kernel : kernels) {
    FailureOr<KernelText> emitted = emitKernel(kernel, architecture);
    hasFailed |= failed(emitted);
    if (failed(emitted))
      continue;
    CompiledKernel &result = results.emplace_back();
    result.name = kernel.getSymName().str();
    result.symbol = std::move(emitted->symbol);
    result.text = std::move(emitted->text);
    result.launch = std::move(emitted->launch);
  }
  return failure(hasFailed);
}

static LogicalResult overrideTexts(ArrayRef<kern::FuncOp> kernels,
                                   StringRef folder,
                                   std::vector<CompiledKernel> &results) {
  SmallVector<StringRef> names;
  for (const CompiledKernel &result : results)
    names.push_back(result.name);
  auto texts = readKernelFiles(folder, suffix, names);
  if (!texts)
    return reportAll(kernels, texts.takeError());
  for (CompiledKernel &result : results)
    if (auto text = texts->find(result.name); text != texts->end())
      result.text = text->second;
  return success();
}

/// The text, with what else is known of the kernel above it.
static std::string annotate(const CompiledKernel &kernel,
                            const Architecture &architecture) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const LaunchShape &launch = kernel.launch;
  os << "// Kernel " << kernel.name << " for " << architecture.name
     << ".\n// Launch: " << launch.threads << " threads and "
     << launch.sharedBytes << " bytes of dynamic shared memory a block, "
     << launch.itemsPerBlock << " work items a block";
  if (launch.blocksPerProcessor)
    os << ", at most " << launch.blocksPerProcessor
       << " blocks a multiprocessor";
  os << ".\n";
  for (const auto &[number, map] : llvm::enumerate(launch.maps))
    os << "// Tensor map " << number << ": argument " << map.argument
       << ", columns " << map.begin << " to " << map.begin + map.columns
       << " of rows of " << map.pitch << ", boxes of " << map.boxRows
       << " rows by " << map.boxColumns << " columns.\n";
  if (kernel.cubin.empty())
    os << "// Not compiled.\n";
  else
    os << "// Compiled: " << kernel.resources.registers << " registers, "
       << kernel.resources.spillBytes << " bytes spilled, "
       << kernel.resources.staticSharedBytes
       << " bytes of static shared memory, " << kernel.cubin.size()
       << " bytes of code.\n";
  for (const std::string &warning : kernel.resources.warnings)
    os << "// " << warning << "\n";
  os << "\n" << kernel.text;
  return text;
}

static LogicalResult dumpTexts(ArrayRef<kern::FuncOp> kernels, StringRef folder,
                               const Architecture &architecture,
                               ArrayRef<CompiledKernel> results) {
  std::vector<KernelFile> files;
  for (const CompiledKernel &result : results)
    files.push_back(
        {result.name + suffix.str(), annotate(result, architecture)});
  return reportAll(kernels, writeKernelFiles(folder, files));
}

static LogicalResult compileTexts(ArrayRef<kern::FuncOp> kernels,
                                  const Architecture &architecture,
                                  const KernelCompilerOptions &options,
                                  std::vector<CompiledKernel> &results) {
  std::vector<CubinRequest> requests;
  for (const CompiledKernel &result : results)
    requests.push_back(
        {result.name + suffix.str(), result.symbol, result.text});
  CubinResults compiled = compileCubins(requests, architecture,
                                        options.cacheDir, options.threads);
  if (!compiled.error.empty())
    return mlir::emitError(kernels.front()->getLoc(),
                           "[FSDPQ-0525] kernels cannot be compiled for ")
           << architecture.name << ": " << compiled.error;
  bool hasFailed = false;
  for (auto [kernel, result, cubin] :
       llvm::zip(kernels, results, compiled.cubins)) {
    if (!cubin.error.empty()) {
      report(kernel, cubin.error);
      hasFailed = true;
      continue;
    }
    for (const std::string &reason :
         checkLaunch(result.launch, cubin.resources, architecture)) {
      report(kernel, reason);
      hasFailed = true;
    }
    for (const std::string &warning : cubin.resources.warnings)
      mlir::emitWarning(kernel->getLoc(), "kernel @")
          << result.name << ": " << warning;
    result.hash = std::move(cubin.hash);
    result.cubin = std::move(cubin.code);
    result.resources = std::move(cubin.resources);
    result.fromCache = cubin.fromCache;
  }
  return failure(hasFailed);
}

FailureOr<std::vector<CompiledKernel>>
cuda::compileKernels(ArrayRef<kern::FuncOp> kernels,
                     const Architecture &architecture,
                     const KernelCompilerOptions &options) {
  std::vector<CompiledKernel> results;
  if (kernels.empty())
    return results;
  if (failed(emitTexts(kernels, architecture, results)))
    return failure();
  if (!options.overrideDir.empty() &&
      failed(overrideTexts(kernels, options.overrideDir, results)))
    return failure();
  LogicalResult isCompiled = success();
  if (options.cubins)
    isCompiled = compileTexts(kernels, architecture, options, results);
  // Texts that could not be compiled are those one wants to see.
  if (!options.dumpDir.empty() &&
      failed(dumpTexts(kernels, options.dumpDir, architecture, results)))
    return failure();
  if (failed(isCompiled))
    return failure();
  return results;
}
