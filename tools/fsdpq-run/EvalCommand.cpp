#include "runtime/train/Evaluator.h"
#include "runtime/train/FirstRank.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/Places.h"
#include "tools/fsdpq-run/PlanSource.h"
#include "tools/fsdpq-run/Session.h"
#include "tools/fsdpq-run/ranks/RunTogether.h"

namespace fsdpq::run {

int runEval(const CommandLine &line, Settings settings,
            rt::Communicator &communicator) {
  ModelInput model;
  rt::Dataset data;
  runTogether(communicator, "reading the model and the data", [&] {
    readAdapter(line, settings);
    if (communicator.rank() == 0 && !settings.trace.empty())
      requireFolderOf(settings.trace, "--trace");
    model = openModelInput(settings);
    data = loadRecords(settings, model);
  });
  const auto plan = obtainPlan(settings, model, communicator);
  if (!plan)
    return 0;
  checkRanks(communicator, settings, line.options, *plan, model, &data);
  Session session(plan, settings, model, communicator);
  const rt::EvaluationRecord result =
      rt::evaluate(session.executor(), data.rows, settings.batchSize,
                   settings.contextLength);
  note("mean loss " + fixed(result.loss, 4) + " over " +
       grouped(result.labelledTokens) + " tokens, perplexity " +
       fixed(result.perplexity, 3));
  printResult(rt::metricsLine(result) + "\n");
  rt::FirstRank first(communicator);
  first.run([&] {
    if (!settings.metrics.empty())
      rt::MetricsFile(settings.metrics).write(result);
  });
  first.finish();
  session.saveTrace();
  return 0;
}

} // namespace fsdpq::run
