#include "runtime/plan/MemoryTable.h"
#include "runtime/train/Adapter.h"
#include "runtime/train/Parameters.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/PlanSource.h"
#include "tools/fsdpq-run/Session.h"

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

std::string statistics(const plan::Plan &plan) {
  std::string text;
  int64_t loaders = 0;
  for (const plan::Function *function : *plan.functions())
    if (function->name()->string_view().starts_with("load"))
      ++loaders;
    else
      text += "  " + function->name()->str() + ": " +
              grouped(countInstructions(*function->body())) +
              " instructions\n";
  int64_t codeBytes = 0;
  for (const plan::Kernel *kernel : *plan.kernels())
    codeBytes += kernel->code() ? kernel->code()->size() : 0;
  return text + "  " + grouped(loaders) + " load functions, " +
         grouped(plan.kernels()->size()) + " kernels (" +
         rt::formatBytes(static_cast<uint64_t>(codeBytes)) + " of code)\n";
}

} // namespace

int runPlan(const CommandLine &line) {
  const Settings settings = readSettings(line);
  const ModelInput model = settings.planFile.empty()
                               ? openModelConfig(settings)
                               : ModelInput();
  const auto plan = obtainPlan(settings, model);
  if (!plan)
    return 0;
  std::string modules;
  for (const std::string &module : rt::adaptedModules(plan->plan()))
    modules += (modules.empty() ? "" : ", ") + module;
  printResult(
      "trainable: " + grouped(rt::trainableElements(plan->plan())) +
      " parameters" + (modules.empty() ? "" : " (adapters on " + modules + ")") +
      "\nmicro-batch: " + grouped(tokenCapacity(*plan)) +
      " tokens at most\n\nMemory of one process\n" +
      rt::buildMemoryTable(plan->plan()).text() + "\nPlan " + plan->hash() +
      "\n" + statistics(plan->plan()));
  return 0;
}

} // namespace fsdpq::run
