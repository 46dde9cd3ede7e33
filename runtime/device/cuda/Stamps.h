//===- Stamps.h - When a GPU's streams got somewhere ------------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cuda/DriverApi.h"

#include <chrono>
#include <deque>
#include <vector>

namespace fsdpq::rt {

/// Times of streams, taken by events: they cost the streams nothing. The GPU's
/// clock is tied to the host's when nothing runs, and again at each such time.
class Stamps {
public:
  explicit Stamps(const DriverApi &driver) : driver(driver) {}
  /// Drops what has not been told.
  ~Stamps();
  Stamps(const Stamps &) = delete;
  Stamps &operator=(const Stamps &) = delete;

  /// The first one waits for the stream, to tie the clocks.
  void add(Device::UseTime use, CUstream stream);
  /// Tells all times. Nothing runs.
  void finish(CUstream stream);

private:
  using Clock = std::chrono::steady_clock;
  struct Stamp {
    CUevent event;
    Device::UseTime use;
  };

  /// More than so many are told as they are done.
  static constexpr size_t mostWaiting = 8192;

  CUevent take();
  void tie(CUstream stream);
  void tell();

  const DriverApi &driver;
  CUevent origin = nullptr; ///< done at `originTime`
  Clock::time_point originTime;
  std::deque<Stamp> waiting; ///< in the order of the calls
  std::vector<CUevent> spare;
};

} // namespace fsdpq::rt
