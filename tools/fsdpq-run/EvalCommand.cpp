#include "runtime/train/Evaluator.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/PlanSource.h"
#include "tools/fsdpq-run/Session.h"

namespace fsdpq::run {

int runEval(const CommandLine &line) {
  const Settings settings = readSettings(line);
  const ModelInput model = openModelInput(settings);
  const rt::Dataset data = loadRecords(settings, model);
  const auto plan = obtainPlan(settings, model);
  if (!plan)
    return 0;
  Session session(plan, settings, model);
  const rt::EvaluationRecord result =
      rt::evaluate(session.executor(), data.rows, settings.batchSize,
                   settings.contextLength);
  note("mean loss " + fixed(result.loss, 4) + " over " +
       grouped(result.labelledTokens) + " tokens, perplexity " +
       fixed(result.perplexity, 3));
  printResult(rt::metricsLine(result) + "\n");
  if (!settings.metrics.empty())
    rt::MetricsFile(settings.metrics).write(result);
  return 0;
}

} // namespace fsdpq::run
