#include "runtime/comm/Solo.h"
#include "runtime/plan/Communication.h"
#include "runtime/plan/Estimate.h"
#include "runtime/plan/Hardware.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/train/Adapter.h"
#include "runtime/train/Parameters.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/DeviceChoice.h"
#include "tools/fsdpq-run/MachineMemory.h"
#include "tools/fsdpq-run/Places.h"
#include "tools/fsdpq-run/PlanSource.h"
#include "tools/fsdpq-run/Session.h"

#include <algorithm>
#include <optional>
#include <set>

namespace fsdpq::run {
namespace {

using Instructions =
    flatbuffers::Vector<flatbuffers::Offset<plan::Instruction>>;

/// Instructions as they stand, a loop and its body counted once. A checked plan
/// nests at most a few loops.
int64_t countInstructions(const Instructions &body) {
  int64_t count = 0;
  for (const plan::Instruction *instruction : body) {
    ++count;
    if (const plan::Loop *loop = instruction->op_as_Loop())
      count += countInstructions(*loop->body());
  }
  return count;
}

/// The functions that only loading calls.
std::set<uint32_t> loadFunctions(const plan::Plan &plan) {
  std::set<uint32_t> functions;
  auto add = [&](int64_t function) {
    if (function >= 0)
      functions.insert(static_cast<uint32_t>(function));
  };
  for (const plan::Unit *unit : *plan.units()) {
    add(unit->begin_function());
    add(unit->store_function());
  }
  for (const plan::Parameter *parameter : *plan.parameters())
    if (const plan::Loader *loader = parameter->loader()) {
      add(loader->piece_function());
      add(loader->mean_function());
      add(loader->scales_function());
      add(loader->offset_function());
    }
  return functions;
}

std::string statistics(const plan::Plan &plan) {
  const std::set<uint32_t> loading = loadFunctions(plan);
  std::string text;
  for (uint32_t i = 0; i < plan.functions()->size(); ++i)
    if (const plan::Function *function = plan.functions()->Get(i);
        !loading.contains(i))
      text += "  " + function->name()->str() + ": " +
              grouped(countInstructions(*function->body())) +
              " instructions\n";
  int64_t codeBytes = 0;
  for (const plan::Kernel *kernel : *plan.kernels())
    codeBytes += kernel->code() ? kernel->code()->size() : 0;
  return text + "  " + grouped(static_cast<int64_t>(loading.size())) +
         " load functions, " + grouped(plan.kernels()->size()) + " kernels (" +
         rt::formatBytes(static_cast<uint64_t>(codeBytes)) + " of code)\n";
}

/// What a process receives, and sends, in the functions of a training step.
std::string communication(const rt::LoadedPlan &loaded) {
  const plan::Plan &plan = loaded.plan();
  const plan::Mesh &mesh = *plan.mesh();
  if (mesh.ranks() == 1)
    return "";
  std::string text = "Communication of one of " + grouped(mesh.ranks()) +
                     " processes, weights in " + grouped(mesh.shards()) +
                     (mesh.shards() == 1 ? " range" : " ranges") +
                     ": bytes received, and as many sent\n";
  for (const char *name : {"micro_step", "optimizer_step"}) {
    const auto function = loaded.findFunction(name);
    if (!function)
      continue;
    const std::vector<rt::Traffic> traffic =
        rt::communicationOf(plan, *plan.functions()->Get(*function));
    uint64_t bytes = 0;
    for (const rt::Traffic &entry : traffic)
      bytes += entry.bytes;
    text += std::string(name) + ": " + rt::formatBytes(bytes) + "  " +
            grouped(static_cast<int64_t>(bytes)) + "\n" +
            rt::trafficText(plan, traffic);
  }
  return text + "\n";
}

/// The mesh and the memory of the machine that is asked about, which is this
/// one if none is described.
void decideMachine(Settings &settings,
                   const std::optional<rt::Hardware> &hardware) {
  const RankOptions &options = settings.rankOptions;
  const int64_t ranks =
      options.ranks.value_or(options.ranksPerHost.value_or(1));
  const int64_t ranksPerHost = std::min(
      ranks, options.ranksPerHost.value_or(
                 hardware ? int64_t(hardware->devicesPerNode) : ranks));
  decideMesh(settings, ranks, ranksPerHost);
  const double memory = hardware ? static_cast<double>(hardware->memoryBytes)
                                 : static_cast<double>(machineMemory()) /
                                       static_cast<double>(ranksPerHost);
  if (settings.memoryShare > 0)
    settings.memoryBudget = static_cast<int64_t>(settings.memoryShare * memory);
}

} // namespace

int runPlan(const CommandLine &line) {
  Settings settings = makeSettings(line);
  readAdapter(line, settings);
  std::optional<rt::Hardware> hardware;
  if (!settings.hardware.empty()) {
    requireFile(settings.hardware, "--hardware");
    hardware = rt::readHardware(settings.hardware);
  }
  decideMachine(settings, hardware);
  decideTarget(settings);
  const ModelInput model = settings.planFile.empty()
                               ? openModelConfig(settings)
                               : ModelInput();
  const auto alone = rt::makeSolo();
  const auto plan = obtainPlan(settings, model, *alone);
  if (!plan)
    return 0;
  std::string modules;
  for (const std::string &module : rt::adaptedModules(plan->plan()))
    modules += (modules.empty() ? "" : ", ") + module;
  std::string text =
      "trainable: " + grouped(rt::trainableElements(plan->plan())) +
      " parameters";
  if (!modules.empty())
    text += " (adapters on " + modules + ")";
  text += "\nmicro-batch: " + grouped(tokenCapacity(*plan)) +
          " tokens at most\n\nMemory of one process\n" +
          rt::buildMemoryTable(plan->plan()).text() + "\n" +
          communication(*plan);
  if (hardware)
    text += rt::estimateStep(plan->plan(), *hardware, settings.accumulation)
                .text() +
            "\n";
  printResult(text + "Plan " + plan->hash() + "\n" + statistics(plan->plan()));
  requireBudget(settings, *plan);
  return 0;
}

} // namespace fsdpq::run
