//===- Session.h - A plan on a device, with its weights ---------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/exec/Executor.h"
#include "runtime/observe/Trace.h"
#include "tools/fsdpq-run/DeviceChoice.h"
#include "tools/fsdpq-run/ModelInput.h"
#include "tools/fsdpq-run/options/Settings.h"

#include <memory>
#include <optional>
#include <string>

namespace fsdpq::run {

/// Prepares the plan, loads the model's weights, and gives adapters their
/// values: those of --adapter, else their initial ones. All ranks make one at
/// the same time.
class Session {
public:
  Session(std::shared_ptr<const rt::LoadedPlan> plan, const Settings &settings,
          const ModelInput &model, rt::Communicator &communicator);

  rt::Executor &executor() { return executor_; }

  /// Writes what all ranks have done so far to the file of --trace, if there is
  /// one; all ranks call this.
  void saveTrace();

  /// What the plan has taken of the host at its peak, arenas and loading
  /// included, or of the GPU; 0 where the system does not tell.
  uint64_t usedMemory() const;

private:
  uint64_t memoryBefore; ///< resident when the plan was about to be prepared
  void saveHardware();
  void saveEvents();

  std::string traceFile, hardwareFile; ///< "": none
  std::optional<rt::Trace> trace;
  uint64_t deviceMemory; ///< of this rank, as a description of the machine says
  ChosenDevice device;
  rt::Executor executor_;
};

/// Throws, on all ranks, if they mean different runs (Error 7020). `data` is
/// null for runs without.
void checkRanks(rt::Communicator &communicator, const Settings &settings,
                const Options &options, const rt::LoadedPlan &plan,
                const ModelInput &model, const rt::Dataset *data);

/// Completes the settings by the adapter's configuration, and prints the notes.
void readAdapter(const CommandLine &line, Settings &settings);

} // namespace fsdpq::run
