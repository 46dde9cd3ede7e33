//===- Settings.h - What a run is to do -------------------------*- C++ -*-===//
//
// The options in the types that the program uses, with the rules between them
// applied.
//
// Errors (exit code BadInput): 6005 a value that another option forbids, 6007
// not there yet, 6009 an option that is needed is missing, 6010 an option
// contradicts the adapter.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/train/AdapterConfig.h"
#include "runtime/train/Schedule.h"
#include "tools/fsdpq-run/options/CommandLine.h"
#include "tools/fsdpq-run/options/RankOptions.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fsdpq::run {

enum class TrainType { Full, Lora, Qlora };

/// How weights are spread over ranks.
struct Sharding {
  bool isSharded = true; ///< false: each rank has all (ddp)
  bool isHybrid = false; ///< within groups of ranks
  bool keepGathered = false;
  std::optional<int64_t> group; ///< ranks of a group, if that was said
  bool splitUnits = false;      ///< attention and MLP of a layer apart
};

struct Settings {
  Command command = Train;
  bool verbose = false;

  std::string modelName, revision;
  TrainType trainType = TrainType::Qlora;
  std::string precision; ///< bf16 or fp32
  /// The type of a quantised base ("!qt.nf4<...>"), or "".
  std::string quantScheme;

  std::string dataset; ///< "" where the command needs none
  std::optional<int64_t> datasetSamples;
  int64_t contextLength = 512, batchSize = 1;
  bool shuffle = true;

  int64_t accumulation = 1, epochs = 1;
  std::optional<int64_t> maxSteps;
  double lr = 0, maxGradNorm = 0; ///< infinity: no clipping
  rt::ScheduleKind schedule = rt::ScheduleKind::Constant;
  std::string optimizer;
  std::map<std::string, double> optimizerOptions; ///< names of the compiler
  bool checkpointing = false;
  uint64_t seed = 0;
  bool deterministic = false;
  bool averagesTokens = false; ///< --loss_average token

  /// Rank 0: no adapters.
  rt::AdapterConfig lora;
  std::string adapterFolder; ///< to start from, or ""

  std::string outputDir, metrics; ///< metrics "": the default place
  bool overwrite = false, saveModel = true;
  bool showBar = false, showEveryStep = false;

  RankOptions rankOptions;
  std::chrono::seconds collectiveTimeout{600};
  Sharding sharding;
  /// Decided by decideMesh().
  int64_t ranks = 1, shards = 1;
  /// Bytes of a rank, or a share of what it has of its machine; 0: no limit.
  int64_t memoryBudget = 0;
  double memoryShare = 0;
  std::string trace, hardware, saveHardware; ///< "": not given

  std::string prompt;
  bool raw = false;
  int64_t maxNewTokens = 0;

  std::string device = "auto"; ///< of --device
  /// Decided by decideDevice(). `deviceReason`: why it is not a GPU, or "".
  bool usesGpu = false;
  int gpu = 0;
  int64_t gpus = 0; ///< visible on this host
  uint64_t gpuBytes = 0;
  std::string deviceReason;
  unsigned threads = 0;
  std::string models, planFile, savePlan, compileTo, dumpIr; ///< "": not given
  /// What is compiled for: of plan --target, else decided by decideDevice().
  std::string target = "cpu";
  std::string dumpKernels, overrideKernels; ///< "": not given

  /// What was decided or has no effect, a line each.
  std::vector<std::string> notes;

  /// Tokens of a micro-batch at most: a multiple of 128.
  int64_t tokenCapacity() const;
  double option(const std::string &name, double otherwise) const;
};

/// Applies the rules. Reads no files.
Settings makeSettings(const CommandLine &line);

/// Says how many ranks there are, `ranksPerHost` of them on a host, which
/// decides how weights are cut.
void decideMesh(Settings &settings, int64_t ranks, int64_t ranksPerHost);

/// Puts the adapter that the run starts from (its configuration) in the place
/// of the options; those given must agree with it.
void useAdapter(Settings &settings, const rt::AdapterConfig &adapter,
                const Options &options);

/// The options that the results of a run depend on, one a line: ranks compare
/// them. Places of files, which hosts may call otherwise, are not among them.
std::string comparedOptions(const Settings &settings, const Options &options);

/// config.yaml: every option of `command` with the value that held.
std::string effectiveOptionsYaml(const Settings &settings,
                                 const Options &options);

} // namespace fsdpq::run
