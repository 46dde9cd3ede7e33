#include "tools/fsdpq-run/Session.h"

#include "runtime/observe/HostMemory.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/train/Adapter.h"
#include "runtime/train/AdapterInit.h"
#include "runtime/train/ModelLoader.h"
#include "tools/fsdpq-run/Console.h"

#include <chrono>
#include <cstdio>

namespace fsdpq::run {

static void sayMemory(const rt::LoadedPlan &plan, bool verbose) {
  const rt::MemoryTable table = rt::buildMemoryTable(plan.plan());
  note("memory: " + rt::formatBytes(table.total));
  if (verbose)
    std::fputs(table.text().c_str(), stderr);
}

static uint64_t startMeasuringMemory() {
  rt::resetPeakHostMemory();
  return rt::residentHostMemory();
}

uint64_t Session::usedMemory() const {
  const uint64_t peak = rt::peakHostMemory();
  return peak > memoryBefore ? peak - memoryBefore : 0;
}

Session::Session(std::shared_ptr<const rt::LoadedPlan> plan,
                 const Settings &settings, const ModelInput &model)
    : memoryBefore(startMeasuringMemory()), device(settings.threads), executor_((sayMemory(*plan, settings.verbose),
                                           std::move(plan)),
                                          device) {
  const auto start = std::chrono::steady_clock::now();
  int64_t tensors = 0;
  rt::loadModel(executor_, *model.files.tensors, model.files.isGguf,
                [&](int64_t, int64_t total) { tensors = total; });
  rt::initialiseAdapters(executor_, settings.seed);
  if (!settings.adapterFolder.empty())
    rt::loadAdapter(executor_, settings.adapterFolder);
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  note("loaded " + grouped(tensors) + " tensors in " +
       fixed(seconds.count(), 2) + " s; computing with " +
       std::to_string(device.threads()) + " threads");
}

Settings readSettings(const CommandLine &line) {
  Settings settings = makeSettings(line);
  if (!settings.adapterFolder.empty())
    useAdapter(settings, rt::readAdapterConfig(settings.adapterFolder),
               line.options);
  for (const std::string &text : settings.notes)
    note(text);
  return settings;
}

} // namespace fsdpq::run
