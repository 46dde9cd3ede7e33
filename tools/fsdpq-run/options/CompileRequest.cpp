#include "tools/fsdpq-run/options/CompileRequest.h"

namespace fsdpq::run {

std::vector<std::string> programsOf(Command command) {
  switch (command) {
  case Eval:
    return {"eval_step"};
  case Generate:
    return {"logits"};
  default:
    return {"micro_step"};
  }
}

CompileOptions makeCompileOptions(const Settings &settings) {
  CompileOptions request;
  request.tokens = settings.tokenCapacity();
  request.rowTokens = settings.contextLength;
  request.programs = programsOf(settings.command);
  if (settings.lora.rank > 0) {
    request.loraRank = settings.lora.rank;
    request.loraScale = settings.lora.scale();
    request.loraDropout = settings.lora.dropout;
    request.loraTargets = settings.lora.targets;
  }
  request.quantScheme = settings.quantScheme;
  request.precision = settings.precision == "fp32" ? "f32" : settings.precision;
  request.checkpointing = settings.checkpointing;
  if (settings.command & (Train | Plan)) {
    request.trainAll = settings.trainType == TrainType::Full;
    request.optimizer = settings.optimizer;
    request.optimizerOptions = settings.optimizerOptions;
  }
  request.ranks = settings.ranks;
  request.shards = settings.shards;
  request.keepGathered = settings.sharding.keepGathered;
  request.splitUnits = settings.sharding.splitUnits;
  request.deterministic = settings.deterministic;
  // With every weight trained, gradients are too large to be kept unreduced.
  request.reduceEachMicroStep = settings.deterministic ||
                                settings.accumulation == 1 ||
                                settings.trainType == TrainType::Full;
  request.memoryBudget = settings.memoryBudget;
  request.target = settings.target;
  // A plan that is only looked at needs no compiled kernels.
  request.planOnly = settings.command == Plan && settings.savePlan.empty() &&
                     settings.dumpKernels.empty() &&
                     settings.overrideKernels.empty();
  request.compileTo = settings.compileTo;
  request.dumpIr = settings.dumpIr;
  request.dumpKernels = settings.dumpKernels;
  request.overrideKernels = settings.overrideKernels;
  request.threads = settings.threads;
  return request;
}

} // namespace fsdpq::run
