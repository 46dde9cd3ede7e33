//===- DeviceFailure.h - The first thing that went wrong --------*- C++ -*-===//
#pragma once

#include <atomic>
#include <exception>
#include <mutex>

namespace fsdpq::rt {

/// What ended the work of a device. Set by any thread, thrown by the one that
/// uses the device.
class DeviceFailure {
public:
  /// The first one stays.
  void set(std::exception_ptr cause) {
    std::lock_guard lock(mutex);
    if (!first)
      first = std::move(cause);
    known = true;
  }

  bool isSet() const { return known.load(std::memory_order_acquire); }
  /// Somebody has been told.
  bool wasThrown() const { return thrown; }

  void check() {
    if (isSet())
      raise();
  }

private:
  [[noreturn]] void raise() {
    thrown = true;
    std::lock_guard lock(mutex);
    std::rethrow_exception(first);
  }

  std::atomic<bool> known = false;
  std::atomic<bool> thrown = false;
  std::mutex mutex;
  std::exception_ptr first;
};

} // namespace fsdpq::rt
