//===- DeviceBuffer.h - An allocation that frees itself ---------*- C++ -*-===//
#pragma once

#include "runtime/device/Device.h"

namespace fsdpq::rt {

/// Owns `bytes` of a device's memory, zeros at first.
class DeviceBuffer {
public:
  DeviceBuffer(Device &device, uint64_t bytes, std::string_view what);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer &&other) noexcept;
  DeviceBuffer(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(const DeviceBuffer &) = delete;

  DeviceAddress address() const { return start; }

private:
  Device *device;
  DeviceAddress start;
  uint64_t bytes;
};

} // namespace fsdpq::rt
