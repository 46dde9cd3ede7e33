#include "runtime/train/Generator.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/PlanSource.h"
#include "tools/fsdpq-run/Session.h"
#include "tools/fsdpq-run/ranks/RunTogether.h"

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

int runGenerate(const CommandLine &line, Settings settings,
                rt::Communicator &communicator) {
  ModelInput model;
  std::unique_ptr<rt::Tokenizer> tokenizer;
  std::vector<int32_t> prompt;
  runTogether(communicator, "reading the model", [&] {
    readAdapter(line, settings);
    model = openModelInput(settings);
    tokenizer = loadTokenizer(model.files);
    prompt = tokenizer->encode(
        settings.raw ? settings.prompt : rt::alpacaPrompt(settings.prompt, ""),
        /*addSpecialTokens=*/true);
  });
  const auto plan = obtainPlan(settings, model, communicator);
  if (!plan)
    return 0;
  checkRanks(communicator, settings, line.options, *plan, model, nullptr);
  Session session(plan, settings, model, communicator);
  const rt::Generation result = rt::generateGreedily(
      session.executor(), prompt,
      {.maxNewTokens = settings.maxNewTokens,
       .stopIds = stopIds(model.files, *tokenizer)});
  printResult(tokenizer->decode(result.ids, /*skipSpecialTokens=*/true) + "\n");
  note(reason(result));
  return 0;
}

} // namespace fsdpq::run
