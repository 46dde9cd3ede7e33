#include "runtime/train/Generator.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/PlanSource.h"
#include "tools/fsdpq-run/Session.h"

namespace fsdpq::run {

static std::string reason(const rt::Generation &result) {
  const std::string count = std::to_string(result.ids.size()) + " tokens; ";
  switch (result.end) {
  case rt::Generation::End::StopToken:
    return count + "the model ended the answer";
  case rt::Generation::End::MaxNewTokens:
    return count + "stopped by --max_new_tokens";
  case rt::Generation::End::Capacity:
    return count + "stopped by --context_length";
  }
  return count;
}

int runGenerate(const CommandLine &line) {
  const Settings settings = readSettings(line);
  const ModelInput model = openModelInput(settings);
  const auto tokenizer = loadTokenizer(model.files);
  const std::vector<int32_t> prompt = tokenizer->encode(
      settings.raw ? settings.prompt : rt::alpacaPrompt(settings.prompt, ""),
      /*addSpecialTokens=*/true);
  const auto plan = obtainPlan(settings, model);
  if (!plan)
    return 0;
  Session session(plan, settings, model);
  const rt::Generation result = rt::generateGreedily(
      session.executor(), prompt,
      {.maxNewTokens = settings.maxNewTokens,
       .stopIds = stopIds(model.files, *tokenizer)});
  printResult(tokenizer->decode(result.ids, /*skipSpecialTokens=*/true) + "\n");
  note(reason(result));
  return 0;
}

} // namespace fsdpq::run
