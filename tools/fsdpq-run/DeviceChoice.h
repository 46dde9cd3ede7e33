//===- DeviceChoice.h - What a run computes on ------------------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "tools/fsdpq-run/options/Settings.h"
#include "tools/fsdpq-run/ranks/RankSetup.h"

#include <memory>
#include <string>

namespace fsdpq::rt {
class CudaDevice;
} // namespace fsdpq::rt

namespace fsdpq::run {

/// Decides for all ranks whether they compute on GPUs, and this rank's GPU: its
/// number on the host modulo the visible ones. `settings` get it, with the target
/// to compile for. With --device auto rank 0 decides: GPUs if it sees any, and the
/// plan of --plan, if there is one, is for them. All ranks call this, and all throw
/// if one of them lacks what was decided: Error 6060 (BadInput).
void decideDevice(Settings &settings, const RankSetup &setup,
                  rt::Communicator &communicator);

/// Ranks that a training run on this host has if nobody says how many: one for each
/// GPU if it may compute on them and they are alike; else 1, as for a plan that is
/// there already.
int64_t countRanksByDefault(const Settings &settings);

/// Of the command plan, which has no ranks: --device cuda means the architecture
/// of this machine's GPU, unless --target says another. Error 6060 if there is none.
void decideTarget(Settings &settings);

/// The communicator for the device that was decided: on GPUs its collectives are
/// NCCL's.
std::unique_ptr<rt::Communicator>
communicatorFor(const Settings &settings, const RankSetup &setup,
                std::unique_ptr<rt::Communicator> communicator);

/// A rank's device, and what is to be said of it.
class ChosenDevice {
public:
  ChosenDevice(const Settings &settings, bool deterministic);
  ~ChosenDevice();
  ChosenDevice(const ChosenDevice &) = delete;
  ChosenDevice &operator=(const ChosenDevice &) = delete;

  rt::Device &get() { return *device; }
  /// "2 threads", "GPU 0 (NVIDIA H200)"
  std::string text() const { return text_; }
  bool isGpu() const { return gpu != nullptr; }
  /// Bytes of the GPU in use beyond those that were when the device was made.
  uint64_t usedBytes() const;

private:
  std::unique_ptr<rt::Device> device;
  std::string text_;
  const rt::CudaDevice *gpu = nullptr; ///< the device, if it is one
  uint64_t usedBefore = 0;
};

/// Bytes that one rank may count on: its share of the host's memory, or of its
/// GPU's.
double memoryOfRank(const Settings &settings, const RankSetup &setup);

} // namespace fsdpq::run
