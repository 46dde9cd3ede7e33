//===- NcclWatch.h - What GPUs' collectives come to -------------*- C++ -*-===//
//
// A collective that waits for a rank that is gone would never end, and the GPU's
// stream with it. A thread looks at all channels every few milliseconds: when one
// of them is late or broken, or the run has failed elsewhere, it ends the
// collectives of all, tells the other ranks, and makes the failure the device's.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/comm/HostChannel.h"
#include "runtime/comm/nccl/NcclApi.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/DriverApi.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace fsdpq::rt {

/// A communicator of NCCL on a stream, as both the channel and the watch use it.
class WatchedComm {
public:
  WatchedComm(CudaDevice &device, CUstream stream, std::string name,
              ncclComm_t comm);
  /// Nothing may be under way.
  ~WatchedComm();
  WatchedComm(const WatchedComm &) = delete;
  WatchedComm &operator=(const WatchedComm &) = delete;

  /// Null after it was ended.
  ncclComm_t get() const { return comm.load(); }
  CudaDevice &device() const { return device_; }

  /// The collective that was given last is the one described.
  void given(const CollectiveCall &call, const char *where);

private:
  friend class NcclWatch;
  using Clock = std::chrono::steady_clock;

  struct Pending {
    CUevent event;
    CollectiveCall call;
    const char *where;
  };

  std::string describe(const Pending &pending) const;
  std::optional<Failure> look(std::chrono::milliseconds limit, int64_t rank);
  void end();

  const NcclApi &nccl;
  const DriverApi &driver;
  CudaDevice &device_;
  const CUstream stream;
  const std::string name;
  std::atomic<ncclComm_t> comm;

  std::mutex mutex; ///< guards what follows
  std::deque<Pending> pending;
  std::vector<CUevent> spare;
  Clock::time_point firstSince; ///< the first of `pending` has been the first
};

class NcclWatch {
public:
  /// `limit`: how long a collective may take from when it is the first that is not
  /// done. The communicator must outlive the watch.
  NcclWatch(Communicator &control, std::chrono::milliseconds limit);
  ~NcclWatch();
  NcclWatch(const NcclWatch &) = delete;
  NcclWatch &operator=(const NcclWatch &) = delete;

  void add(WatchedComm &comm);
  void remove(WatchedComm &comm);

private:
  static constexpr std::chrono::milliseconds every{20};

  void work();
  void endAll(const Failure &failure);

  Communicator &control;
  const std::chrono::milliseconds limit;
  std::mutex mutex; ///< guards what follows
  std::condition_variable changed;
  std::vector<WatchedComm *> comms;
  bool stopping = false;
  std::thread thread;
};

} // namespace fsdpq::rt
