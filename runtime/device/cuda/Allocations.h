//===- Allocations.h - What a GPU's memory is used for ----------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"

#include <map>

namespace fsdpq::rt {

/// The ranges that a device has given out.
class Allocations {
public:
  void add(DeviceAddress address, uint64_t bytes) {
    ends[address] = address + bytes;
    ++generation_;
  }
  void remove(DeviceAddress address) {
    ends.erase(address);
    ++generation_;
  }

  /// Bytes from `address` to the end of the range that it is in; 0 if it is in
  /// none.
  uint64_t bytesFrom(DeviceAddress address) const {
    auto after = ends.upper_bound(address);
    if (after == ends.begin())
      return 0;
    const DeviceAddress end = std::prev(after)->second;
    return end > address ? end - address : 0;
  }

  /// Another number after each change.
  uint64_t generation() const { return generation_; }

private:
  std::map<DeviceAddress, DeviceAddress> ends; ///< by their beginning
  uint64_t generation_ = 0;
};

} // namespace fsdpq::rt
