//===- NcclChannel.h - Collectives between GPUs -----------------*- C++ -*-===//
#pragma once

#include "runtime/comm/nccl/AddKernel.h"
#include "runtime/comm/nccl/NcclWatch.h"

#include <optional>

namespace fsdpq::rt {

/// What a channel on a GPU does with the sum of several ranks: its own range is
/// copied or added to the destination.
class GpuChannel : public Channel {
public:
  uint64_t receivedBytes() const final { return received; }

protected:
  GpuChannel(CudaDevice &device, uint16_t stream)
      : device(device), stream(stream) {}

  CUstream handle() const {
    return static_cast<CUstream>(device.stream(stream));
  }
  /// to += from
  void add(DeviceAddress to, DeviceAddress from, int64_t elements,
           plan::CommType type);
  /// to = from, or += from
  void put(DeviceAddress to, DeviceAddress from, int64_t elements,
           plan::CommType type, bool accumulate);

  CudaDevice &device;
  const uint16_t stream;
  uint64_t received = 0;

private:
  std::optional<AddKernel> adder; ///< made when it is first needed
};

/// Of one member.
class LoneGpuChannel final : public GpuChannel {
public:
  LoneGpuChannel(CudaDevice &device, uint16_t stream)
      : GpuChannel(device, stream) {}

  void allGather(DeviceAddress from, DeviceAddress to, int64_t bytes,
                 const char *where) override;
  void reduceScatter(DeviceAddress from, DeviceAddress to, int64_t elements,
                     plan::CommType type, uint32_t ranges, bool accumulate,
                     const char *where) override;
  void allReduce(DeviceAddress data, int64_t elements, plan::CommType type,
                 const char *where) override;
};

/// Of several. A reduce-scatter that adds to its destination, or whose ranges are
/// fewer than the members, leaves sums in its source.
class NcclChannel final : public GpuChannel {
public:
  NcclChannel(NcclWatch &watch, CudaDevice &device, uint16_t stream,
              std::string name, ncclComm_t comm, int64_t size,
              int64_t position);
  ~NcclChannel() override;

  void allGather(DeviceAddress from, DeviceAddress to, int64_t bytes,
                 const char *where) override;
  void reduceScatter(DeviceAddress from, DeviceAddress to, int64_t elements,
                     plan::CommType type, uint32_t ranges, bool accumulate,
                     const char *where) override;
  void allReduce(DeviceAddress data, int64_t elements, plan::CommType type,
                 const char *where) override;

private:
  template <typename Call>
  void give(CollectiveCall call, const char *where, const Call &collective);

  const NcclApi &nccl;
  NcclWatch &watch;
  const std::string name;
  WatchedComm comm;
  const int64_t size, position;
  uint64_t sequence = 0;
};

} // namespace fsdpq::rt
