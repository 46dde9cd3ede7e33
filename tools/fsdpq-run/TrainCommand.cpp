#include "runtime/observe/Progress.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Error.h"
#include "runtime/train/Adapter.h"
#include "runtime/train/FirstRank.h"
#include "runtime/train/FullModel.h"
#include "runtime/train/Parameters.h"
#include "runtime/train/StopSignals.h"
#include "runtime/train/Trainer.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/OutputFolder.h"
#include "tools/fsdpq-run/Places.h"
#include "tools/fsdpq-run/PlanSource.h"
#include "tools/fsdpq-run/Session.h"
#include "tools/fsdpq-run/options/Values.h"
#include "tools/fsdpq-run/ranks/RunTogether.h"

#include <csignal>
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
  options.lossAverage =
      settings.averagesTokens ? rt::LossAverage::Token : rt::LossAverage::Batch;
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
         fixed(settings.lora.scale(), 4) + ", dropout " +
         numberText(settings.lora.dropout) + ", on " + modules);
  note("trainable: " + grouped(rt::trainableElements(plan)) + " parameters");
}

void saySteps(const rt::Trainer &trainer, const Settings &settings) {
  note(std::to_string(trainer.totalSteps()) + " optimizer steps, " +
       std::to_string(trainer.stepsPerEpoch()) + " an epoch, of " +
       std::to_string(settings.accumulation) + " x " +
       (settings.ranks == 1
            ? ""
            : std::to_string(settings.ranks) + " processes x ") +
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
          const ModelInput &model) {
  if (settings.trainType != TrainType::Full) {
    rt::saveAdapter(executor, settings.lora, settings.outputDir);
    note("saved the adapter in " + settings.outputDir);
  } else if (settings.saveModel) {
    rt::saveFullModel(executor, model.files.config, model.files.path,
                      settings.outputDir);
    note("saved the model in " + settings.outputDir);
  } else {
    note("the model is not saved (--save_model false)");
  }
}

/// The signal that stopped the run, which may have come to one rank only.
int agreedSignal(rt::Communicator &communicator, int mine) {
  for (const std::string &other : communicator.exchange(
           std::to_string(mine), "the signal that stopped the run"))
    if (const int signal = static_cast<int>(readInteger(other).value_or(0)))
      return signal;
  return SIGTERM;
}

} // namespace

int runTrain(const CommandLine &line, Settings settings,
             rt::Communicator &communicator) {
  std::optional<OutputFolder> output; // of rank 0
  ModelInput model;
  rt::Dataset data;
  runTogether(communicator, "reading the model and the data", [&] {
    readAdapter(line, settings);
    if (communicator.rank() == 0) {
      output.emplace(settings.outputDir, settings.overwrite);
      if (!settings.trace.empty())
        requireFolderOf(settings.trace, "--trace");
      if (!settings.saveHardware.empty())
        requireFolderOf(settings.saveHardware, "--save_hardware");
    }
    model = openModelInput(settings);
    if (settings.trainType == TrainType::Full && model.files.isGguf)
      throw Error(6025, ExitCode::BadInput,
                  "--train_type full from a GGUF file is not there yet",
                  settings.modelName, "use the Hugging Face form of the model");
    data = loadRecords(settings, model);
  });
  const auto plan = obtainPlan(settings, model, communicator);
  if (!plan)
    return 0;
  sayWhatIsTrained(settings, plan->plan());
  checkRanks(communicator, settings, line.options, *plan, model, &data);

  Session session(plan, settings, model, communicator);
  std::optional<rt::Trainer> trainer;
  runTogether(communicator, "dealing the records", [&] {
    trainer.emplace(session.executor(), data.rows, trainerOptions(settings));
  });
  saySteps(*trainer, settings);

  rt::FirstRank first(communicator);
  std::optional<rt::MetricsFile> metrics;
  first.run([&] {
    output->open();
    rt::writeFileAtomically(output->file("config.yaml"),
                            effectiveOptionsYaml(settings, line.options));
    metrics.emplace(settings.metrics.empty() ? output->file("metrics.jsonl")
                                             : settings.metrics);
  });
  first.finish();

  rt::StopSignals signals;
  rt::TrainingResult result;
  {
    std::optional<StepDisplay> display;
    if (communicator.rank() == 0)
      display.emplace(settings, trainer->totalSteps());
    result = trainer->run(
        [&](const rt::StepRecord &record) {
          if (metrics)
            metrics->write(record);
          if (display)
            display->show(record);
          // The first step touches memory and makes the library's code.
          if (record.step == 1 && trainer->totalSteps() > 1 &&
              !settings.saveHardware.empty())
            session.executor().trace()->restartTimes();
        },
        [&] { return signals.received() != 0; });
  }
  sayUsedMemory(session, plan->plan());
  save(session.executor(), settings, model);
  session.saveTrace();
  if (result.stopped) {
    const int signal = agreedSignal(communicator, signals.received());
    note("stopped by signal " + std::to_string(signal) + " after step " +
         std::to_string(result.steps) + " of " +
         std::to_string(trainer->totalSteps()));
    return 128 + signal;
  }
  note("done: " + std::to_string(result.steps) + " steps, last loss " +
       fixed(result.lastLoss, 4));
  return 0;
}

} // namespace fsdpq::run
