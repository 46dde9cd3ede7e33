#include "tools/fsdpq-run/PlanSource.h"

#include "runtime/plan/MemoryTable.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/support/MappedFile.h"
#include "runtime/train/Parameters.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/Places.h"
#include "tools/fsdpq-run/options/CompileRequest.h"
#include "tools/fsdpq-run/options/Values.h"
#include "tools/fsdpq-run/ranks/RunTogether.h"

#include <cstdio>

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

/// The rank of the plan's adapters; 0 if it has none.
static int64_t adapterRank(const plan::Plan &plan) {
  for (const plan::Parameter *parameter : *plan.parameters())
    if (rt::isAdapter(*parameter) && parameter->hf() &&
        parameter->hf()->string_view().ends_with(".lora_A.weight"))
      return parameter->shape()->Get(0);
  return 0;
}

static std::optional<std::string> metadata(const plan::Plan &plan,
                                           std::string_view key) {
  if (plan.metadata())
    for (const plan::KeyValue *entry : *plan.metadata())
      if (entry->key()->string_view() == key && entry->value())
        return entry->value()->str();
  return std::nullopt;
}

using Body = flatbuffers::Vector<flatbuffers::Offset<plan::Instruction>>;

/// Whether some product takes elements of `type`.
static bool multiplies(const Body &body, plan::DType type) {
  for (const plan::Instruction *instruction : body) {
    const plan::Gemm *gemm = instruction->op_as_Gemm();
    const plan::Loop *loop = instruction->op_as_Loop();
    if ((gemm && gemm->dtype() == type) ||
        (loop && multiplies(*loop->body(), type)))
      return true;
  }
  return false;
}

/// What the options say must be what the plan was compiled for.
static void checkPlan(const Settings &settings, const rt::LoadedPlan &loaded) {
  auto refuse = [&](const std::string &what, const std::string &hint) {
    throw Error(6028, ExitCode::BadInput, what, settings.planFile, hint);
  };
  const plan::Plan &plan = loaded.plan();
  const int64_t ranks = plan.mesh()->ranks();
  if (ranks != settings.ranks)
    refuse("the plan is for " + std::to_string(ranks) +
               (ranks == 1 ? " process" : " processes") + "; the run has " +
               std::to_string(settings.ranks),
           "start as many, or compile again");
  if (settings.deterministic && !plan.mesh()->deterministic())
    refuse("the plan was compiled without --deterministic",
           "leave it out, or compile again");
  for (const std::string &program : programsOf(settings.command))
    if (!loaded.findFunction(program))
      refuse("the plan has no program \"" + program + "\"",
             "save one for this command with --save_plan");
  const int64_t capacity = tokenCapacity(loaded);
  if (settings.tokenCapacity() > capacity)
    refuse("the plan holds " + std::to_string(capacity) +
               " tokens; --batch_size x --context_length needs " +
               std::to_string(settings.tokenCapacity()),
           "lower one of them, or compile again");

  std::string precision = "fp32";
  for (const plan::Function *function : *plan.functions())
    if (multiplies(*function->body(), plan::DType::BF16))
      precision = "bf16";
  if (settings.command != Plan && settings.precision != precision)
    refuse("the plan was compiled for --precision " + precision + ", not " +
               settings.precision,
           "give that, or compile again");

  // Without an adapter to start from, eval and generate leave adapters at their
  // initial values, which change nothing.
  if (settings.command != Train && settings.lora.rank == 0)
    return;
  const int64_t rank = adapterRank(plan);
  if (settings.lora.rank != rank)
    refuse("the plan was compiled for adapters of rank " +
               std::to_string(rank) + ", not " +
               std::to_string(settings.lora.rank),
           rank == 0 ? "use a plan with adapters"
                     : "use adapters of rank " + std::to_string(rank) +
                           " (train: --lora_rank)");
  if (rank == 0)
    return;
  const auto scale = metadata(plan, "lora_scale"),
             dropout = metadata(plan, "lora_dropout");
  if (!scale || !dropout)
    refuse("the plan does not say what its adapters are multiplied by, and how "
           "much of their input is dropped",
           "compile it with this version's fsdpq-run");
  if (readReal(*scale) != settings.lora.scale())
    refuse("the plan multiplies adapters by " + *scale + ", not " +
               numberText(settings.lora.scale()),
           "give the --lora_alpha that it was compiled with");
  if (settings.command == Train && readReal(*dropout) != settings.lora.dropout)
    refuse("the plan drops adapters' inputs at a rate of " + *dropout + ", not " +
               numberText(settings.lora.dropout),
           "give the --lora_dropout that it was compiled with");
}

int64_t tokenCapacity(const rt::LoadedPlan &plan) {
  const auto tokens = plan.findScalar("tokens");
  return tokens ? plan.plan().scalars()->Get(*tokens)->max() : 0;
}

using Bytes = std::vector<uint8_t>;

static Bytes readPlan(const Settings &settings) {
  requireFile(settings.planFile, "--plan");
  const rt::MappedFile file(settings.planFile);
  return Bytes(file.data(), file.data() + file.size());
}

static CompileOptions requestFor(const Settings &settings,
                                 const ModelInput &model) {
  CompileOptions request = makeCompileOptions(settings);
  request.models = modelsPlace(settings.models);
  if (request.models.empty())
    throw Error(6023, ExitCode::BadInput,
                "the folder with the architectures (.mlir) is not found", "",
                "name it with --models or $FSDPQ_MODELS");
  request.configText = model.configText;
  request.gguf = model.files.isGguf;
  request.kernelCache = kernelCacheFolder();
  return request;
}

/// No bytes when --compile_to ended the compilation.
static Bytes compilePlan(const Settings &settings, const ModelInput &model) {
  CompileResult result = compileModel(requestFor(settings, model));
  if (!result.diagnostics.empty())
    std::fprintf(stderr, "%s%s", result.diagnostics.c_str(),
                 result.diagnostics.ends_with('\n') ? "" : "\n");
  if (!result.succeeded)
    throw Error(6020, ExitCode::BadInput,
                "the model could not be compiled (see above)",
                settings.modelName);
  if (!settings.compileTo.empty()) {
    printResult(result.ir);
    return {};
  }
  note("compiled in " + fixed(result.seconds, 2) + " s (" +
       std::to_string(result.kernels) + " kernels, " +
       std::to_string(result.kernelsFromCache) + " from the cache)");
  if (!settings.savePlan.empty())
    rt::writeFileAtomically(
        settings.savePlan,
        {reinterpret_cast<const char *>(result.plan.data()),
         result.plan.size()});
  return std::move(result.plan);
}

/// What rank 0 gives to the others.
static std::shared_ptr<const rt::LoadedPlan>
makePlan(const Settings &settings, const ModelInput &model, Bytes &bytes) {
  const bool isRead = !settings.planFile.empty();
  bytes = isRead ? readPlan(settings) : compilePlan(settings, model);
  if (!isRead && bytes.empty())
    return nullptr;
  auto plan = rt::LoadedPlan::fromBytes(bytes, isRead ? settings.planFile
                                                      : "compiled plan");
  if (isRead && settings.command != Plan)
    checkPlan(settings, *plan);
  if (settings.command != Plan)
    requireBudget(settings, *plan);
  return plan;
}

void requireBudget(const Settings &settings, const rt::LoadedPlan &plan) {
  const uint64_t bytes = rt::buildMemoryTable(plan.plan()).total;
  if (settings.memoryBudget == 0 ||
      bytes <= static_cast<uint64_t>(settings.memoryBudget))
    return;
  throw Error(6056, ExitCode::DoesNotFit,
              "a process needs " + rt::formatBytes(bytes) +
                  "; --memory_budget allows " +
                  rt::formatBytes(static_cast<uint64_t>(settings.memoryBudget)),
              "",
              "recompute (--use_gradient_checkpointing), lower --batch_size or "
              "--context_length, gather half a layer at a time (--fsdp_units "
              "attn+mlp), or take more processes");
}

std::shared_ptr<const rt::LoadedPlan>
obtainPlan(const Settings &settings, const ModelInput &model,
           rt::Communicator &communicator) {
  const bool isFirst = communicator.rank() == 0;
  Bytes bytes;
  std::shared_ptr<const rt::LoadedPlan> plan;
  runTogether(communicator, "compiling the plan", [&] {
    if (isFirst)
      plan = makePlan(settings, model, bytes);
  });
  if (communicator.size() == 1)
    return plan;
  const std::vector<std::string> all = communicator.exchange(
      {reinterpret_cast<const char *>(bytes.data()), bytes.size()}, "the plan");
  if (!isFirst && !all.front().empty())
    plan = rt::LoadedPlan::fromBytes(Bytes(all[0].begin(), all[0].end()),
                                     "the plan of rank 0");
  return plan;
}

} // namespace fsdpq::run
