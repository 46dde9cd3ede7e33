#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Exec/Passes.h"
#include "compiler/Fuse/Passes.h"
#include "compiler/Grad/Passes.h"
#include "compiler/Kernel/Passes.h"
#include "compiler/Model/Passes.h"
#include "compiler/Shard/Passes.h"
#include "compiler/Target/Cuda/Passes.h"
#include "compiler/Target/Plan/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace fsdpq;

const std::vector<std::string> &fsdpq::compilePhases() {
  static const std::vector<std::string> phases = {"model", "grad",   "shard",
                                                  "fuse",  "kernel", "exec"};
  return phases;
}

bool fsdpq::trains(const CompileOptions &options) {
  return llvm::is_contained(options.programs, "micro_step");
}

/// The model phase after tfm-bind-config.
static void buildModelPhase(OpPassManager &manager,
                            const CompileOptions &options) {
  TfmBuildProgramsOptions programs;
  programs.programs.assign(options.programs.begin(), options.programs.end());
  manager.addPass(createTfmBuildPrograms(programs));
  if (options.loraRank > 0) {
    TfmInsertAdaptersOptions adapters;
    adapters.rank = options.loraRank;
    adapters.scale = options.loraScale;
    adapters.dropout = options.loraDropout;
    adapters.targets.assign(options.loraTargets.begin(),
                            options.loraTargets.end());
    manager.addPass(createTfmInsertAdapters(adapters));
  }
  if (!options.quantScheme.empty())
    manager.addPass(createTfmQuantizeParams({options.quantScheme}));
  if (trains(options))
    manager.addPass(createTfmFreeze({options.trainAll ? "all" : "adapters"}));
  manager.addPass(createTfmMergeKinds());
  manager.addPass(createTfmVerifyModel());
}

static void buildGradPhase(OpPassManager &manager,
                           const CompileOptions &options) {
  // What has a derivative rule of its own is fused before it is differentiated.
  manager.addPass(createTfmFuseLora());
  manager.addPass(createTfmFuseGated());
  manager.addPass(createTfmFuseQkv());
  manager.addPass(createTfmFuseGateUp());
  manager.addPass(createTfmSetPrecision({options.precision}));
  if (trains(options)) {
    manager.addPass(createTfmCheckDifferentiable());
    manager.addPass(createTfmAutodiff());
  }
  manager.addPass(createTfmSkipDropout());
  if (trains(options))
    manager.addPass(
        createTfmPlanResiduals({options.checkpointing ? "block" : "cheap"}));
  manager.addPass(createTfmChunkLoss());
  if (trains(options)) {
    TfmInsertOptimizerOptions optimizer;
    optimizer.rule = options.optimizer;
    for (const auto &[name, value] : options.optimizerOptions) {
      llvm::SmallString<32> text;
      APFloat(value).toString(text, /*FormatPrecision=*/17);
      optimizer.settings.push_back(name + "=" + std::string(text));
    }
    manager.addPass(createTfmInsertOptimizer(optimizer));
    manager.addPass(createTfmVerifyGrad());
  }
}

static void buildShardPhase(OpPassManager &manager,
                            const CompileOptions &options) {
  FsdpFormUnitsOptions units;
  units.ranks = options.ranks;
  units.shards = options.shards;
  units.deterministic = options.deterministic;
  units.split = options.splitUnits;
  manager.addPass(createFsdpFormUnits(units));
  manager.addPass(createFsdpAssignLayout());
  manager.addPass(createFsdpInsertCollectives(
      {options.reduceEachMicroStep ? "micro_step" : "step"}));
  if (options.keepGathered || options.keepBudget > 0)
    manager.addPass(
        createFsdpKeepGathered({options.keepBudget, options.keepGathered}));
  manager.addPass(createFsdpFoldTrivialCollectives());
  manager.addPass(createFsdpVerifyResidency());
}

static void buildFusePhase(OpPassManager &manager) {
  manager.addPass(createTfmFuseNormResidual());
  manager.addPass(createTfmFuseXent());
  manager.addPass(createTfmFuseOptimizer());
}

static void buildKernelPhase(OpPassManager &manager,
                             const CompileOptions &options) {
  manager.addPass(createKernOutline({options.rowTokens}));
  manager.addPass(createKernOutlineLoaders());
  const bool isGpu = options.target != "cpu";
  KernSelectImplOptions implementation;
  if (isGpu)
    implementation.libraryTypes = {"f32", "bf16", "f64"};
  manager.addPass(createKernSelectImpl(implementation));
  manager.addPass(createKernDedup());
  if (isGpu)
    manager.addPass(cuda::createKernPrepareEmission({options.target}));
  manager.addPass(createKernVerifyKernels());
}

static void buildExecPhase(OpPassManager &manager) {
  manager.addPass(createExecBuild());
  manager.addPass(createExecScheduleOverlap());
  manager.addPass(createExecInsertEvents());
  manager.addPass(createExecPlanMemory());
  manager.addPass(createExecVerifyRaces());
  manager.addPass(createExecVerifyMemory());
}

void fsdpq::buildPhase(OpPassManager &manager, StringRef phase,
                       const CompileOptions &options) {
  if (phase == "model") {
    manager.addPass(createTfmBindConfig({.configText = options.configText,
                                         .gguf = options.gguf,
                                         .tokens = options.tokens}));
    buildModelPhase(manager, options);
  } else if (phase == "grad")
    buildGradPhase(manager, options);
  else if (phase == "shard")
    buildShardPhase(manager, options);
  else if (phase == "fuse")
    buildFusePhase(manager);
  else if (phase == "kernel")
    buildKernelPhase(manager, options);
  else
    buildExecPhase(manager);
}

namespace {
/// CompileOptions as pipeline options.
struct CliOptions : PassPipelineOptions<CliOptions> {
  Option<std::string> config{*this, "config",
                             llvm::cl::desc("Path of config.json")};
  Option<bool> gguf{*this, "gguf", llvm::cl::desc("It is GGUF metadata"),
                    llvm::cl::init(false)};
  Option<int64_t> tokens{*this, "tokens", llvm::cl::desc("Tokens at most"),
                         llvm::cl::init(512)};
  ListOption<std::string> programs{*this, "programs",
                                   llvm::cl::desc("Programs to make")};
  Option<std::string> train{*this, "train",
                            llvm::cl::desc("full, lora or qlora"),
                            llvm::cl::init("qlora")};
  Option<int64_t> rank{*this, "rank", llvm::cl::desc("Rank of adapters"),
                       llvm::cl::init(8)};
  Option<double> scale{*this, "scale", llvm::cl::desc("alpha / rank"),
                       llvm::cl::init(1.0)};
  Option<double> dropout{*this, "dropout",
                         llvm::cl::desc("Rate of dropout of adapters' inputs"),
                         llvm::cl::init(0.0)};
  ListOption<std::string> targets{*this, "targets",
                                  llvm::cl::desc("Adapter targets")};
  Option<std::string> scheme{
      *this, "scheme", llvm::cl::desc("Storage of the base under qlora"),
      llvm::cl::init("!qt.nf4<block = 64, scale = dq<256>>")};
  Option<std::string> precision{
      *this, "precision",
      llvm::cl::desc("Storage of activations and frozen weights: f32 or bf16"),
      llvm::cl::init("f32")};
  Option<bool> checkpointing{*this, "checkpointing",
                             llvm::cl::desc("Recompute layers"),
                             llvm::cl::init(false)};
  Option<std::string> optimizer{*this, "optimizer",
                                llvm::cl::desc("Update rule"),
                                llvm::cl::init("adamw")};

  Option<int64_t> ranks{*this, "ranks", llvm::cl::desc("Ranks of the mesh"),
                        llvm::cl::init(1)};
  Option<int64_t> shards{*this, "shards",
                         llvm::cl::desc("Ranges of units; 0: one a rank"),
                         llvm::cl::init(0)};
  Option<bool> keepGathered{*this, "keep-gathered",
                            llvm::cl::desc("Keep weights whole for backward"),
                            llvm::cl::init(false)};
  Option<bool> splitUnits{*this, "split-units",
                          llvm::cl::desc("Attention and MLP apart"),
                          llvm::cl::init(false)};
  Option<bool> deterministic{
      *this, "deterministic",
      llvm::cl::desc("Results do not depend on the number of ranks"),
      llvm::cl::init(false)};
  Option<std::string> reduce{*this, "reduce",
                             llvm::cl::desc("micro_step or step"),
                             llvm::cl::init("micro_step")};

  Option<std::string> target{*this, "target",
                             llvm::cl::desc("cpu, or a GPU such as sm_90a"),
                             llvm::cl::init("cpu")};
  Option<std::string> compileTo{*this, "compile-to",
                                llvm::cl::desc("Last phase of fsdpq-compile"),
                                llvm::cl::init("exec")};

  CompileOptions get() const {
    CompileOptions options;
    options.gguf = gguf;
    options.tokens = tokens;
    options.programs.assign(programs.begin(), programs.end());
    if (options.programs.empty())
      options.programs = {"micro_step"};
    options.trainAll = train == "full";
    if (!options.trainAll) {
      options.loraRank = rank;
      options.loraScale = scale;
      options.loraDropout = dropout;
      options.loraTargets.assign(targets.begin(), targets.end());
      if (options.loraTargets.empty())
        options.loraTargets = {"all"};
    }
    if (train == "qlora")
      options.quantScheme = scheme;
    options.precision = precision;
    options.checkpointing = checkpointing;
    options.ranks = ranks;
    options.shards = shards == 0 ? ranks : shards;
    options.keepGathered = keepGathered;
    options.splitUnits = splitUnits;
    options.deterministic = deterministic;
    options.reduceEachMicroStep = reduce != "step";
    options.optimizer = optimizer;
    options.target = target;
    if (optimizer == "adamw" || optimizer == "adam")
      options.optimizerOptions = {{"beta1", 0.9}, {"beta2", 0.95},
                                  {"epsilon", 1e-5}, {"weight_decay", 0.1}};
    if (optimizer == "adadelta")
      options.optimizerOptions = {{"rho", 0.9}, {"epsilon", 1e-6}};
    return options;
  }
};
} // namespace

/// The model phase with the configuration read from a file by its first pass.
static void buildFromCli(OpPassManager &manager, StringRef phase,
                         const CliOptions &cli) {
  CompileOptions options = cli.get();
  if (phase != "model")
    return buildPhase(manager, phase, options);
  manager.addPass(createTfmBindConfig(
      {.config = cli.config, .gguf = cli.gguf, .tokens = cli.tokens}));
  buildModelPhase(manager, options);
}

void fsdpq::registerPipelines() {
  for (const std::string &phase : compilePhases())
    PassPipelineRegistration<CliOptions>(
        "fsdpq-" + phase, "The " + phase + " phase",
        [phase](OpPassManager &manager, const CliOptions &cli) {
          buildFromCli(manager, phase, cli);
        });
  PassPipelineRegistration<CliOptions>(
      "fsdpq-compile", "All phases, from a model to its plan",
      [](OpPassManager &manager, const CliOptions &cli) {
        for (const std::string &phase : compilePhases()) {
          buildFromCli(manager, phase, cli);
          if (phase == cli.compileTo)
            break;
        }
      });
}
