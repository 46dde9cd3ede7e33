//===- HostChannel.h - Collectives between processors' memories -*- C++ -*-===//
//
// What all channels on CPUs share: a collective becomes one task of the device's
// stream, made of exchanges in which each rank gives every other one some bytes.
// Sums are taken here, in rank order, whatever carries the bytes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Communicator.h"

#include <atomic>
#include <span>

namespace fsdpq::rt {

/// What a rank says of a collective to the others, which must say the same.
struct CollectiveCall {
  enum class Kind : uint8_t { AllGather, ReduceScatter, AllReduce };
  Kind kind;
  plan::CommType type; ///< U8 for AllGather
  bool accumulate;
  uint32_t ranges;
  uint64_t sequence; ///< counts the channel's calls from 1
  int64_t bytes;     ///< of one rank's or one range's share

  bool operator==(const CollectiveCall &) const = default;
  /// "all_gather number 12 of 4096 bytes"
  std::string text() const;
};

class HostChannel : public Channel {
public:
  void allGather(DeviceAddress from, DeviceAddress to, int64_t bytes,
                 const char *where) final;
  void reduceScatter(DeviceAddress from, DeviceAddress to, int64_t elements,
                     plan::CommType type, uint32_t ranges, bool accumulate,
                     const char *where) final;
  void allReduce(DeviceAddress data, int64_t elements, plan::CommType type,
                 const char *where) final;
  uint64_t receivedBytes() const final { return received; }

protected:
  HostChannel(std::vector<int64_t> members, int64_t rank, Device &device,
              uint16_t stream, std::string name);

  /// Members of the group, and which of them this rank is.
  int64_t size() const { return static_cast<int64_t>(members.size()); }
  int64_t position() const { return position_; }
  const std::vector<int64_t> &ranks() const { return members; }
  const std::string &name() const { return name_; }

  /// "all_gather number 12 of 4096 bytes on the channel 'gather (Shard)', at
  /// llama.mlir:41:10", for messages.
  std::string describe(const CollectiveCall &call, const char *where) const;

  /// Gives send[i] to member i and puts what that one gives into receive[i], for
  /// all i but the own position; `bytes` each. Blocks. Called on the stream by all
  /// members alike. Throws 7001-7005.
  virtual void swap(const CollectiveCall &call, const char *where,
                    std::span<const std::byte *const> send,
                    std::span<std::byte *const> receive, int64_t bytes) = 0;

private:
  /// swap(), counted.
  void exchange(const CollectiveCall &call, const char *where,
                std::span<const std::byte *const> send,
                std::span<std::byte *const> receive, int64_t bytes) {
    swap(call, where, send, receive, bytes);
    received += static_cast<uint64_t>((size() - 1) * bytes);
  }
  void gather(const CollectiveCall &call, const char *where,
              const std::byte *from, std::byte *to);
  void reduce(const CollectiveCall &call, const char *where,
              const std::byte *from, std::byte *to);
  void sumEverywhere(const CollectiveCall &call, const char *where,
                     std::byte *data);
  void sumPieces(const CollectiveCall &call, const char *where,
                 std::span<const std::byte *const> from, std::byte *to,
                 bool accumulate);

  std::vector<int64_t> members;
  int64_t position_;
  Device &device;
  uint16_t stream;
  std::string name_;
  uint64_t sequence = 0;
  std::atomic<uint64_t> received = 0;
  std::vector<std::byte> scratch; ///< pieces of the others' terms
};

} // namespace fsdpq::rt
