//===- Session.h - A plan on a device, with its weights ---------*- C++ -*-===//
#pragma once

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/exec/Executor.h"
#include "tools/fsdpq-run/ModelInput.h"
#include "tools/fsdpq-run/options/Settings.h"

#include <memory>

namespace fsdpq::run {

/// Prepares the plan, loads the model's weights, and gives adapters their
/// values: those of --adapter, else their initial ones.
class Session {
public:
  Session(std::shared_ptr<const rt::LoadedPlan> plan, const Settings &settings,
          const ModelInput &model);

  rt::Executor &executor() { return executor_; }

  /// What the plan has taken of the host at its peak, arenas and loading
  /// included; 0 where the system does not tell.
  uint64_t usedMemory() const;

private:
  uint64_t memoryBefore; ///< resident when the plan was about to be prepared
  rt::CpuDevice device;
  rt::Executor executor_;
};

/// The settings of a command line, its adapter's configuration included; the
/// notes are printed.
Settings readSettings(const CommandLine &line);

} // namespace fsdpq::run
