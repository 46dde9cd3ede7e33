#include "compiler/Pipelines/Compile.h"
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Pipelines/Registration.h"
#include "compiler/Target/Plan/BuildPlan.h"
#include "dialects/Exec/Exec.h"
#include "dialects/Tfm/Tfm.h"
#include "runtime/plan/PlanFile.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

#include <charconv>
#include <chrono>

using namespace mlir;
using namespace fsdpq;

namespace {
class Compiler {
public:
  Compiler(const CompileOptions &options, CompileResult &result)
      : options(options), result(result), context(makeRegistry()) {
    context.getDiagEngine().registerHandler(
        [this](Diagnostic &diagnostic) { record(diagnostic); });
    context.printOpOnDiagnostic(false); // users have the place, not the IR
    context.loadAllAvailableDialects();
  }

  LogicalResult run();

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerCompilerDialects(registry);
    return registry;
  }

  /// One line a diagnostic, its notes below it.
  void record(const Diagnostic &diagnostic) {
    llvm::raw_string_ostream os(result.diagnostics);
    auto print = [&](const Diagnostic &d, StringRef kind) {
      if (auto place = d.getLocation()->findInstanceOf<FileLineColLoc>())
        os << place.getFilename().getValue() << ":" << place.getLine() << ":"
           << place.getColumn() << ": ";
      os << kind << d << "\n";
    };
    StringRef kind = diagnostic.getSeverity() == DiagnosticSeverity::Error
                         ? "error: "
                         : diagnostic.getSeverity() == DiagnosticSeverity::Warning
                               ? "warning: "
                               : "";
    print(diagnostic, kind);
    for (const Diagnostic &note : diagnostic.getNotes())
      print(note, "  note: ");
  }

  LogicalResult fail(const Twine &message) {
    result.diagnostics += ("error: " + message + "\n").str();
    return failure();
  }

  FailureOr<OwningOpRef<ModuleOp>> parseModels();
  LogicalResult dump(ModuleOp module, unsigned number, StringRef phase);
  LogicalResult finish(ModuleOp module);

  const CompileOptions &options;
  CompileResult &result;
  MLIRContext context;
};
} // namespace

/// All architectures of the file or folder, in one module.
FailureOr<OwningOpRef<ModuleOp>> Compiler::parseModels() {
  SmallVector<std::string> files;
  if (llvm::sys::fs::is_directory(options.models)) {
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(options.models, error), end;
         !error && it != end; it.increment(error))
      if (llvm::sys::path::extension(it->path()) == ".mlir")
        files.push_back(it->path());
    llvm::sort(files);
  } else {
    files.push_back(options.models);
  }
  if (files.empty())
    return fail("[FSDPQ-0001] no .mlir file in the models folder '" +
                options.models + "'");
  OwningOpRef<ModuleOp> all = ModuleOp::create(UnknownLoc::get(&context));
  for (const std::string &file : files) {
    OwningOpRef<ModuleOp> module =
        parseSourceFile<ModuleOp>(file, ParserConfig(&context));
    if (!module)
      return fail("[FSDPQ-0002] cannot read the model description '" + file + "'");
    for (Operation &op : llvm::make_early_inc_range(*module->getBody()))
      op.moveBefore(all->getBody(), all->getBody()->end());
  }
  return all;
}

LogicalResult Compiler::dump(ModuleOp module, unsigned number, StringRef phase) {
  if (std::error_code error = llvm::sys::fs::create_directories(options.dumpIr))
    return fail("[FSDPQ-0003] cannot make the folder '" + options.dumpIr +
                "': " + error.message());
  llvm::SmallString<128> path(options.dumpIr);
  llvm::sys::path::append(path, std::to_string(number) + "-" + phase + ".mlir");
  std::error_code error;
  llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_Text);
  if (error)
    return fail("[FSDPQ-0003] cannot write '" + path + "': " + error.message());
  module.print(file.os());
  file.keep();
  return success();
}

/// The shortest text that reads as `value`.
static std::string numberText(double value) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), value).ptr};
}

/// What a run must agree with and cannot see from the instructions.
static std::map<std::string, std::string>
describeAdapters(const CompileOptions &options) {
  if (options.loraRank == 0)
    return {};
  return {{"lora_scale", numberText(options.loraScale)},
          {"lora_dropout", numberText(options.loraDropout)}};
}

LogicalResult Compiler::finish(ModuleOp module) {
  FailureOr<BuiltPlan> built =
      buildPlan(*module.getOps<exec::PlanOp>().begin(),
                {.target = options.target,
                 .kernels = !options.planOnly,
                 .kernelCache = options.kernelCache,
                 .threads = options.threads,
                 .dumpKernels = options.dumpKernels,
                 .overrideKernels = options.overrideKernels,
                 .metadata = describeAdapters(options)});
  if (failed(built))
    return failure();
  result.kernels = built->kernels;
  result.kernelsFromCache = built->kernelsFromCache;
  result.plan = std::move(built->bytes);
  return success();
}

LogicalResult Compiler::run() {
  if (!options.compileTo.empty() &&
      !llvm::is_contained(compilePhases(), options.compileTo))
    return fail("[FSDPQ-0004] unknown phase '" + options.compileTo +
                "'; known: " + llvm::join(compilePhases(), ", "));
  if (failed(parseTarget(options.target, UnknownLoc::get(&context))))
    return failure();
  FailureOr<OwningOpRef<ModuleOp>> module = parseModels();
  if (failed(module))
    return failure();
  for (auto [number, phase] : llvm::enumerate(compilePhases())) {
    PassManager manager(&context);
    buildPhase(manager, phase, options);
    if (failed(manager.run(**module)))
      return failure();
    if (!options.dumpIr.empty() && failed(dump(**module, number + 1, phase)))
      return failure();
    if (phase == options.compileTo) {
      llvm::raw_string_ostream os(result.ir);
      (*module)->print(os);
      return success();
    }
  }
  return finish(**module);
}

static uint64_t countArenaBytes(const CompileResult &result) {
  uint64_t bytes = 0;
  for (const plan::Arena *arena :
       *plan::GetPlan(result.plan.data() + rt::planHeaderBytes)->arenas())
    bytes += arena->bytes();
  return bytes;
}

/// How many bytes the plan without kept weights leaves of the budget, or why
/// there is no such plan. A second look makes up for what the placement of the
/// kept weights costs beyond their size.
static int64_t findKeepBudget(CompileOptions options, CompileResult &result) {
  options.planOnly = true;
  options.dumpKernels = options.overrideKernels = "";
  int64_t budget = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    options.keepBudget = budget;
    CompileResult trial;
    trial.succeeded = succeeded(Compiler(options, trial).run());
    if (!trial.succeeded) {
      result = std::move(trial);
      return 0;
    }
    int64_t left = options.memoryBudget - (int64_t)countArenaBytes(trial);
    budget = attempt == 0 ? std::max<int64_t>(left, 0)
                          : std::max<int64_t>(budget + std::min<int64_t>(left, 0), 0);
  }
  return budget;
}

CompileResult fsdpq::compileModel(const CompileOptions &requested) {
  CompileResult result;
  auto start = std::chrono::steady_clock::now();
  CompileOptions options = requested;
  if (options.memoryBudget > 0 && options.shards > 1 && !options.keepGathered &&
      trains(options) && options.compileTo.empty())
    options.keepBudget = findKeepBudget(options, result);
  if (result.diagnostics.empty())
    result.succeeded = succeeded(Compiler(options, result).run());
  result.seconds = std::chrono::duration<double>(
                       std::chrono::steady_clock::now() - start)
                       .count();
  return result;
}
