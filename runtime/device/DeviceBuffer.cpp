#include "runtime/device/DeviceBuffer.h"

#include <utility>

namespace fsdpq::rt {

DeviceBuffer::DeviceBuffer(Device &device, uint64_t bytes,
                           std::string_view what)
    : device(&device), start(device.allocate(bytes, what)), bytes(bytes) {}

DeviceBuffer::DeviceBuffer(DeviceBuffer &&other) noexcept
    : device(std::exchange(other.device, nullptr)), start(other.start),
      bytes(other.bytes) {}

DeviceBuffer::~DeviceBuffer() {
  if (device)
    device->free(start, bytes);
}

} // namespace fsdpq::rt
