#include "runtime/observe/Progress.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/train/Adapter.h"
#include "runtime/train/FullModel.h"
#include "runtime/train/Parameters.h"
#include "runtime/train/StopSignals.h"
#include "runtime/train/Trainer.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/OutputFolder.h"
#include "tools/fsdpq-run/PlanSource.h"
#include "tools/fsdpq-run/Session.h"

#include <optional>

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

namespace {

rt::TrainerOptions trainerOptions(const Settings &settings) {
  rt::TrainerOptions options;
  options.batches.batchSize = settings.batchSize;
  options.batches.accumulation = settings.accumulation;
  options.batches.shuffle = settings.shuffle;
  options.batches.seed = settings.seed;
  options.contextLength = settings.contextLength;
  options.epochs = settings.epochs;
  options.maxSteps = settings.maxSteps;
  options.schedule = settings.schedule;
  options.lr = settings.lr;
  options.maxGradNorm = settings.maxGradNorm;
  options.beta1 = settings.option("beta1", options.beta1);
  options.beta2 = settings.option("beta2", options.beta2);
  return options;
}

void sayWhatIsTrained(const Settings &settings, const plan::Plan &plan) {
  std::string modules;
  for (const std::string &module : rt::adaptedModules(plan))
    modules += (modules.empty() ? "" : ", ") + module;
  if (!modules.empty())
    note("adapters of rank " + std::to_string(settings.lora.rank) + ", scale " +
         fixed(settings.lora.scale(), 4) + ", on " + modules);
  note("trainable: " + grouped(rt::trainableElements(plan)) + " parameters");
}

void saySteps(const rt::Trainer &trainer, const Settings &settings) {
  note(std::to_string(trainer.totalSteps()) + " optimizer steps, " +
       std::to_string(trainer.stepsPerEpoch()) + " an epoch, of " +
       std::to_string(settings.accumulation) + " x " +
       std::to_string(settings.batchSize) + " rows");
  if (trainer.droppedRows() > 0)
    note(grouped(trainer.droppedRows()) +
         " rows of each epoch fill no step and are left out");
}

void sayUsedMemory(const Session &session, const plan::Plan &plan) {
  if (const uint64_t used = session.usedMemory())
    note("memory used: " + grouped(used) + " bytes at the peak, " +
         grouped(rt::buildMemoryTable(plan).total) + " planned");
}

/// Shows the steps where --log_to says.
class StepDisplay {
public:
  StepDisplay(const Settings &settings, int64_t totalSteps) {
    if (settings.showBar)
      bar.emplace(stderr, rt::styleFor(stderr), totalSteps);
    if (settings.showEveryStep)
      lines.emplace(stdout, rt::Progress::Style::EveryStep, totalSteps);
  }
  void show(const rt::StepRecord &record) {
    if (bar)
      bar->show(record);
    if (bar && lines)
      bar->endLine(); // both may end on one terminal
    if (lines)
      lines->show(record);
  }

private:
  std::optional<rt::Progress> bar, lines;
};

void save(rt::Executor &executor, const Settings &settings,
          const ModelInput &model, const OutputFolder &output) {
  if (settings.trainType != TrainType::Full) {
    rt::saveAdapter(executor, settings.lora, output.path());
    note("saved the adapter in " + output.path());
  } else if (settings.saveModel) {
    rt::saveFullModel(executor, model.files.config, model.files.path,
                      output.path());
    note("saved the model in " + output.path());
  } else {
    note("the model is not saved (--save_model false)");
  }
}

} // namespace

int runTrain(const CommandLine &line) {
  const Settings settings = readSettings(line);
  OutputFolder output(settings.outputDir, settings.overwrite);
  const ModelInput model = openModelInput(settings);
  if (settings.trainType == TrainType::Full && model.files.isGguf)
    throw Error(6025, ExitCode::BadInput,
                "--train_type full from a GGUF file is not there yet",
                settings.modelName, "use the Hugging Face form of the model");
  const rt::Dataset data = loadRecords(settings, model);
  const auto plan = obtainPlan(settings, model);
  if (!plan)
    return 0;
  sayWhatIsTrained(settings, plan->plan());

  Session session(plan, settings, model);
  rt::Trainer trainer(session.executor(), data.rows, trainerOptions(settings));
  saySteps(trainer, settings);
  output.open();
  rt::writeFileAtomically(output.file("config.yaml"),
                          effectiveOptionsYaml(settings, line.options));
  rt::MetricsFile metrics(settings.metrics.empty()
                              ? output.file("metrics.jsonl")
                              : settings.metrics);

  rt::StopSignals signals;
  rt::TrainingResult result;
  {
    StepDisplay display(settings, trainer.totalSteps());
    result = trainer.run(
        [&](const rt::StepRecord &record) {
          metrics.write(record);
          display.show(record);
        },
        [&] { return signals.received() != 0; });
  }
  sayUsedMemory(session, plan->plan());
  save(session.executor(), settings, model, output);
  if (const int signal = signals.received()) {
    note("stopped by signal " + std::to_string(signal) + " after step " +
         std::to_string(result.steps) + " of " +
         std::to_string(trainer.totalSteps()));
    return 128 + signal;
  }
  note("done: " + std::to_string(result.steps) + " steps, last loss " +
       fixed(result.lastLoss, 4));
  return 0;
}

} // namespace fsdpq::run
