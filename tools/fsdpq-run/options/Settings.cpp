#include "tools/fsdpq-run/options/Settings.h"

#include "runtime/data/MicroBatch.h"
#include "runtime/support/Error.h"
#include "tools/fsdpq-run/options/Values.h"

#include <bit>
#include <limits>

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

int64_t Settings::tokenCapacity() const {
  const int64_t tokens = batchSize * contextLength;
  return (tokens + rt::kRowMultiple - 1) / rt::kRowMultiple * rt::kRowMultiple;
}

double Settings::option(const std::string &name, double otherwise) const {
  const auto found = optimizerOptions.find(name);
  return found == optimizerOptions.end() ? otherwise : found->second;
}

namespace {

[[noreturn]] void fail(int id, std::string what, std::string hint) {
  throw Error(id, ExitCode::BadInput, std::move(what), "", std::move(hint));
}

class Maker {
public:
  explicit Maker(const CommandLine &line)
      : command(line.command), options(line.options) {
    settings.command = command;
    settings.notes = line.notes;
  }

  Settings make() {
    settings.verbose = options.boolean("verbose");
    settings.threads = static_cast<unsigned>(options.integer("threads"));
    settings.models = textOrEmpty("models");
    if (command == Doctor)
      return std::move(settings);
    settings.device = options.text("device");
    readModel();
    readData();
    readAdapters();
    readQuantisation();
    readRanks();
    readSharding();
    readBudget();
    if (command & (Train | Plan)) {
      readTraining();
      readOptimizer();
      readMachine();
    }
    readOutput();
    if (command == Generate)
      readGeneration();
    return std::move(settings);
  }

private:
  std::string textOrEmpty(std::string_view name) const {
    return options.find(name).value_or("");
  }

  void note(std::string text) { settings.notes.push_back(std::move(text)); }

  /// For options that a choice made elsewhere leaves without effect.
  void noteIfGiven(std::initializer_list<std::string_view> names,
                   const std::string &why) {
    for (std::string_view name : names)
      if (options.isGiven(name))
        note("--" + std::string(name) + " has no effect: " + why);
  }

  void readModel() {
    settings.modelName = options.text("model_name");
    settings.revision = options.text("revision");
    const std::string type = options.text("train_type");
    settings.trainType = type == "full"   ? TrainType::Full
                         : type == "lora" ? TrainType::Lora
                                          : TrainType::Qlora;
    settings.precision = options.text("precision");
    if (settings.trainType == TrainType::Full && settings.precision == "bf16" &&
        command & (Train | Plan))
      note("train_type full: weights are f32, their copies in products bf16");
    settings.planFile = textOrEmpty("plan");
    settings.savePlan = textOrEmpty("save_plan");
    settings.compileTo = textOrEmpty("compile_to");
    settings.dumpIr = textOrEmpty("dump_ir");
    if (command == Plan)
      settings.target = options.text("target");
    settings.dumpKernels = textOrEmpty("dump_kernels");
    settings.overrideKernels = textOrEmpty("override_kernels");
    if (!settings.planFile.empty())
      noteIfGiven({"compile_to", "dump_ir", "save_plan", "models", "target",
                   "dump_kernels", "override_kernels",
                   "sharding_strategy", "shard_group", "fsdp_units",
                   "memory_budget"},
                  "--plan is compiled already");
  }

  void readData() {
    settings.dataset = textOrEmpty("dataset");
    static constexpr std::string_view referenceNames =
        "alpaca|alpaca_sample|dummy|guanaco|sql|orca_math";
    if (isChoice(referenceNames, settings.dataset))
      fail(6007, "the data set \"" + settings.dataset + "\" is not there yet",
           "give a file of records (a file of that name: ./" +
               settings.dataset + ")");
    if (settings.dataset.empty() && command & (Train | Eval))
      fail(6009, "there is no --dataset", "give a file of records");
    if (options.isGiven("dataset_samples"))
      settings.datasetSamples = options.integer("dataset_samples");
    settings.contextLength = options.integer("context_length");
    settings.batchSize =
        command == Generate ? 1 : options.integer("batch_size");
    constexpr int64_t most =
        std::numeric_limits<int32_t>::max() - rt::kRowMultiple;
    if (settings.tokenCapacity() > most)
      fail(6005,
           "--batch_size " + std::to_string(settings.batchSize) +
               " x --context_length " +
               std::to_string(settings.contextLength) +
               " is more than 2^31 tokens",
           "lower one of them");
  }

  void readAdapters() {
    settings.adapterFolder = textOrEmpty("adapter");
    const bool isFull = settings.trainType == TrainType::Full;
    if (isFull && !settings.adapterFolder.empty())
      fail(6005, "--train_type full has no adapters, but --adapter is given",
           "leave one of them out");
    if (isFull)
      noteIfGiven({"lora_rank", "lora_alpha", "lora_dropout",
                   "lora_target_modules"},
                  "--train_type full has no adapters");
    if (isFull || !(command & (Train | Plan)))
      return;
    settings.lora.dropout = options.real("lora_dropout");
    if (settings.lora.dropout >= 1)
      fail(6005, "--lora_dropout " + options.text("lora_dropout") +
                     " would drop everything",
           "give a rate that is less than 1");
    settings.lora.rank = options.integer("lora_rank");
    settings.lora.alpha = options.real("lora_alpha");
    settings.lora.targets = options.list("lora_target_modules");
    settings.lora.baseModel = settings.modelName;
  }

  void readQuantisation() {
    if (settings.trainType != TrainType::Qlora) {
      noteIfGiven({"n_bits", "quant_type", "blocksize", "double_quant"},
                  "the base is not quantised");
      return;
    }
    const int64_t block = options.integer("blocksize");
    if (!std::has_single_bit(static_cast<uint64_t>(block)))
      fail(6005, "--blocksize cannot be " + std::to_string(block),
           "expected a power of two");
    settings.quantScheme =
        "!qt." + options.text("quant_type") +
        "<block = " + std::to_string(block) + ", scale = " +
        (options.boolean("double_quant") ? "dq<256>" : "f32") + ">";
  }

  void readTraining() {
    settings.shuffle = options.boolean("shuffle");
    settings.accumulation = options.integer("gradient_accumulation_steps");
    settings.epochs = options.integer("num_epochs");
    const int64_t maxSteps = options.integer("max_steps");
    if (maxSteps == 0)
      fail(6005, "--max_steps cannot be 0",
           "-1 means as many as the epochs have");
    if (maxSteps > 0)
      settings.maxSteps = maxSteps;
    settings.seed = static_cast<uint64_t>(options.integer("seed"));
    settings.lr = options.real("lr");
    const std::string schedule = options.text("lr_scheduler");
    settings.schedule = schedule == "linear"   ? rt::ScheduleKind::Linear
                        : schedule == "cosine" ? rt::ScheduleKind::Cosine
                                               : rt::ScheduleKind::Constant;

    const bool clips = options.isGiven("apply_gradient_clipping")
                           ? options.boolean("apply_gradient_clipping")
                           : options.isGiven("grad_norm");
    settings.maxGradNorm = clips ? options.real("grad_norm")
                                 : std::numeric_limits<double>::infinity();
    if (!clips)
      noteIfGiven({"grad_norm"}, "--apply_gradient_clipping is false");

    const bool isGiven = options.isGiven("use_gradient_checkpointing");
    settings.checkpointing =
        isGiven && options.boolean("use_gradient_checkpointing");
    if (!isGiven)
      note("gradient checkpointing off (auto; --use_gradient_checkpointing "
           "saves memory)");
  }

  void readOptimizer() {
    settings.optimizer = options.text("optimizer");
    const bool isAdamW = settings.optimizer == "adamw";
    auto &values = settings.optimizerOptions;
    if (isAdamW || settings.optimizer == "adam") {
      auto realOr = [&](std::string_view name, double otherwise) {
        return options.isGiven(name) ? options.real(name) : otherwise;
      };
      values["beta1"] = realOr("adam_beta1", 0.9);
      values["beta2"] = realOr("adam_beta2", isAdamW ? 0.95 : 0.999);
      values["epsilon"] = realOr("adam_epsilon", isAdamW ? 1e-5 : 1e-8);
      values["weight_decay"] = isAdamW ? options.real("wd") : 0;
    } else {
      noteIfGiven({"adam_beta1", "adam_beta2", "adam_epsilon"},
                  "the optimizer is " + settings.optimizer);
    }
    if (settings.optimizer == "adadelta") { // torch's defaults
      values["rho"] = 0.9;
      values["epsilon"] = 1e-6;
    }
    if (!isAdamW)
      noteIfGiven({"wd"}, "only adamw has weight decay");
  }

  void readMachine() {
    noteIfGiven({"use_cpu_offload", "use_activation_cpu_offload"},
                "on the CPU everything is in host memory");
    settings.hardware = textOrEmpty("hardware");
    settings.deterministic = options.boolean("deterministic");
    settings.averagesTokens = options.text("loss_average") == "token";
  }

  void readBudget() {
    const std::string budget = options.text("memory_budget");
    if (budget == "auto")
      return;
    if (const std::optional<double> share = readPercentage(budget))
      settings.memoryShare = *share;
    else if (const std::optional<int64_t> bytes = readBytes(budget))
      settings.memoryBudget = *bytes;
    else
      fail(6005, "--memory_budget cannot be \"" + budget + "\"",
           "expected bytes such as 22GiB, a share such as 90%, or auto");
  }

  void readRanks() {
    RankOptions &ranks = settings.rankOptions;
    if (options.isGiven("nproc_per_node"))
      ranks.ranksPerHost = options.integer("nproc_per_node");
    const int64_t world = options.integer("world_size");
    if (world == 0)
      fail(6005, "--world_size cannot be 0", "-1 means as many as are started");
    if (world > 0)
      ranks.ranks = world;
    ranks.masterAddress = options.find("master_addr");
    if (options.isGiven("master_port"))
      ranks.masterPort = static_cast<uint16_t>(options.integer("master_port"));
    ranks.tokenFile = textOrEmpty("job_token_file");
    settings.collectiveTimeout =
        std::chrono::seconds(options.integer("collective_timeout"));
  }

  void readSharding() {
    const std::string strategy = options.text("sharding_strategy");
    Sharding &sharding = settings.sharding;
    sharding.isSharded = strategy != "ddp";
    sharding.isHybrid = strategy.starts_with("hybrid_");
    sharding.keepGathered = strategy.ends_with("shard_grad_op");
    sharding.splitUnits = options.text("fsdp_units") == "attn+mlp";
    if (sharding.isHybrid && options.isGiven("shard_group"))
      sharding.group = options.integer("shard_group");
    if (!sharding.isHybrid)
      noteIfGiven({"shard_group"}, "only the hybrid sharding strategies have "
                                   "groups");
    if (!sharding.isSharded)
      noteIfGiven({"fsdp_units"}, "with ddp nothing is gathered");
  }

  void readOutput() {
    settings.metrics = textOrEmpty("metrics");
    settings.trace = textOrEmpty("trace");
    settings.saveHardware = textOrEmpty("save_hardware");
    if (!(command & (Train | Plan)))
      return;
    settings.outputDir = options.text("output_dir");
    settings.overwrite = options.boolean("overwrite");
    if (options.isGiven("save_model"))
      settings.saveModel = options.boolean("save_model");
    if (settings.trainType != TrainType::Full)
      noteIfGiven({"save_model"}, "the adapter is always saved, and the base "
                                  "does not change");
    for (const std::string &place : options.list("log_to"))
      (place == "tqdm" ? settings.showBar : settings.showEveryStep) = true;
  }

  void readGeneration() {
    settings.prompt = textOrEmpty("prompt");
    if (settings.prompt.empty())
      fail(6009, "there is no --prompt", "give the instruction to answer");
    settings.raw = options.boolean("raw");
    settings.maxNewTokens = options.integer("max_new_tokens");
  }

  const Command command;
  const Options &options;
  Settings settings;
};

} // namespace

Settings makeSettings(const CommandLine &line) { return Maker(line).make(); }

void decideMesh(Settings &settings, int64_t ranks, int64_t ranksPerHost) {
  const Sharding &sharding = settings.sharding;
  settings.ranks = ranks;
  settings.shards = !sharding.isSharded  ? 1
                    : !sharding.isHybrid ? ranks
                    : sharding.group     ? *sharding.group
                                         : ranksPerHost;
  if (settings.planFile.empty() && ranks % settings.shards != 0)
    fail(6005,
         "the number of processes, " + std::to_string(ranks) +
             ", is no multiple of " + std::to_string(settings.shards) + " (" +
             (sharding.group ? "--shard_group" : "those of one machine") + ")",
         "give a --shard_group that divides it, or another "
         "--sharding_strategy");
}

void useAdapter(Settings &settings, const rt::AdapterConfig &adapter,
                const Options &options) {
  auto refuse = [&](const std::string &name, const std::string &value) {
    fail(6010,
         "--" + name + " " + options.text(name) +
             " contradicts the adapter, which has " + value,
         "leave the option out: the adapter's value holds");
  };
  if (options.isGiven("lora_rank") &&
      options.integer("lora_rank") != adapter.rank)
    refuse("lora_rank", std::to_string(adapter.rank));
  if (options.isGiven("lora_alpha") &&
      options.real("lora_alpha") != adapter.alpha)
    refuse("lora_alpha", numberText(adapter.alpha));
  if (options.isGiven("lora_target_modules") &&
      options.list("lora_target_modules") != adapter.targets) {
    std::string targets;
    for (const std::string &target : adapter.targets)
      targets += (targets.empty() ? "" : ",") + target;
    refuse("lora_target_modules", targets);
  }
  // How an adapter is trained does not belong to it as its shape does.
  const double dropout = options.isGiven("lora_dropout") ? settings.lora.dropout
                                                         : adapter.dropout;
  settings.lora = adapter;
  settings.lora.dropout = dropout;
  settings.lora.baseModel = settings.modelName;
}

} // namespace fsdpq::run
