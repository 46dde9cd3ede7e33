#include "tools/fsdpq-run/Session.h"

#include "runtime/exec/Calibration.h"
#include "runtime/observe/HostMemory.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/train/Adapter.h"
#include "runtime/train/AdapterInit.h"
#include "runtime/train/FirstRank.h"
#include "runtime/train/ModelLoader.h"
#include "runtime/train/RunCheck.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/MachineMemory.h"

#include <chrono>
#include <cstdio>

namespace fsdpq::run {

static void sayMemory(const rt::LoadedPlan &plan, bool verbose) {
  const rt::MemoryTable table = rt::buildMemoryTable(plan.plan());
  note("memory: " + rt::formatBytes(table.total));
  if (verbose && !isSilent())
    std::fputs(table.text().c_str(), stderr);
}

static uint64_t startMeasuringMemory() {
  rt::resetPeakHostMemory();
  return rt::residentHostMemory();
}

uint64_t Session::usedMemory() const {
  if (device.isGpu())
    return device.usedBytes();
  const uint64_t peak = rt::peakHostMemory();
  return peak > memoryBefore ? peak - memoryBefore : 0;
}

/// What a rank has, in a machine whose host memory all share.
static uint64_t memoryOf(const Settings &settings, int64_t ranks) {
  return settings.usesGpu ? settings.gpuBytes
                          : static_cast<uint64_t>(machineMemory() / ranks);
}

Session::Session(std::shared_ptr<const rt::LoadedPlan> plan,
                 const Settings &settings, const ModelInput &model,
                 rt::Communicator &communicator)
    : memoryBefore(startMeasuringMemory()), traceFile(settings.trace),
      hardwareFile(settings.saveHardware),
      deviceMemory(memoryOf(settings, communicator.size())),
      device(settings, plan->plan().mesh()->deterministic()),
      executor_((sayMemory(*plan, settings.verbose), plan), device.get(),
                communicator) {
  if (!traceFile.empty() || !hardwareFile.empty())
    executor_.setTrace(&trace.emplace(communicator.rank()));
  const rt::Trace::Span span(executor_.trace(), "load");
  const auto start = std::chrono::steady_clock::now();
  const rt::LoadReport loaded =
      rt::loadModel(executor_, *model.files.tensors, model.files.isGguf);
  rt::initialiseAdapters(executor_, settings.seed);
  if (!settings.adapterFolder.empty())
    rt::loadAdapter(executor_, settings.adapterFolder);
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  note("loaded " + grouped(loaded.tensors) + " tensors in " +
       fixed(seconds.count(), 2) + " s; computing with " + device.text());
}

void Session::saveTrace() {
  if (!trace)
    return;
  executor_.setTrace(nullptr);
  if (!hardwareFile.empty())
    saveHardware();
  if (!traceFile.empty())
    saveEvents();
}

/// As the first rank has measured it.
void Session::saveHardware() {
  rt::Communicator &communicator = executor_.communicator();
  rt::FirstRank first(communicator);
  first.run([&] {
    rt::writeFileAtomically(
        hardwareFile,
        rt::hardwareText(rt::calibrate(
            executor_.plan().plan(), *trace,
            static_cast<uint32_t>(communicator.size()), deviceMemory)));
  });
  first.finish();
  note("description of this machine: " + hardwareFile);
}

void Session::saveEvents() {
  rt::FirstRank first(executor_.communicator());
  const std::vector<std::string> pieces =
      executor_.communicator().exchange(trace->serialise(), "the trace");
  first.run(
      [&] { rt::writeFileAtomically(traceFile, rt::joinTraces(pieces)); });
  first.finish();
  note("trace: " + traceFile +
       (trace->dropped() == 0
            ? ""
            : ", without the last " +
                  grouped(static_cast<int64_t>(trace->dropped())) + " events"));
  for (const rt::Trace::StreamTimes &times : trace->times())
    if (times.busy() > 0)
      note("stream " + times.stream + ": computing " + fixed(times.work, 2) +
           " s, communicating " + fixed(times.communication, 2) +
           " s, waiting for other streams " + fixed(times.waiting, 2) + " s");
}

void checkRanks(rt::Communicator &communicator, const Settings &settings,
                const Options &options, const rt::LoadedPlan &plan,
                const ModelInput &model, const rt::Dataset *data) {
  rt::RunIdentity identity;
  identity.planHash = plan.hash();
  identity.options = comparedOptions(settings, options) +
                     "configuration of the model: " +
                     std::to_string(std::hash<std::string>()(model.configText));
  if (data)
    identity.data = rt::fingerprintRows(data->rows);
  if (communicator.size() > 1)
    identity.weights = rt::fingerprintTensors(*model.files.tensors);
  rt::checkRanksAgree(communicator, identity);
}

void readAdapter(const CommandLine &line, Settings &settings) {
  if (!settings.adapterFolder.empty())
    useAdapter(settings, rt::readAdapterConfig(settings.adapterFolder),
               line.options);
  for (const std::string &text : settings.notes)
    note(text);
}

} // namespace fsdpq::run
