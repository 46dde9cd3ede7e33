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
  request.programs = programsOf(settings.command);
  if (settings.lora.rank > 0) {
    request.loraRank = settings.lora.rank;
    request.loraScale = settings.lora.scale();
    request.loraTargets = settings.lora.targets;
  }
  request.quantScheme = settings.quantScheme;
  request.checkpointing = settings.checkpointing;
  if (settings.command & (Train | Plan)) {
    request.trainAll = settings.trainType == TrainType::Full;
    request.optimizer = settings.optimizer;
    request.optimizerOptions = settings.optimizerOptions;
  }
  request.planOnly = settings.command == Plan;
  request.compileTo = settings.compileTo;
  request.dumpIr = settings.dumpIr;
  request.threads = settings.threads;
  return request;
}

} // namespace fsdpq::run
