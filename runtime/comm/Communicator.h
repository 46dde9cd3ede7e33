//===- Communicator.h - The ranks of a run ----------------------*- C++ -*-===//
//
// Implementations: runtime/comm/inprocess (threads), runtime/comm/gloo
// (processes on CPUs), one for a run of a single rank (Solo.h), and
// runtime/comm/nccl, which puts the collectives of GPUs in the place of those of
// another one. The conformance suite in test/unit/comm runs against all but the
// last.
//
// Errors (exit code PeerFailure): 7001 a rank is gone, 7002 a rank does not
// answer, 7003 another rank failed (with what it said), 7004 a collective took
// too long (naming it and the ranks that have not come), 7005 ranks call
// different collectives; connecting: 7010-7019 (see gloo/Rendezvous.h). The
// first of them is told to all ranks, whose pending and later calls throw it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/comm/Failure.h"
#include "runtime/device/Device.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::rt {

/// The collectives of one group of ranks on one stream of a device. Each call
/// gives work to that stream, as the calls of Device do; all ranks of the group
/// make the same calls in the same order. `where` (the model operation, or "")
/// must live as long as the channel: messages name it. Sums are taken in the
/// group's rank order by implementations on CPUs. See plan.fbs for what the
/// collectives do.
class Channel {
public:
  virtual ~Channel() = default;

  virtual void allGather(DeviceAddress from, DeviceAddress to, int64_t bytes,
                         const char *where) = 0;
  virtual void reduceScatter(DeviceAddress from, DeviceAddress to,
                             int64_t elements, plan::CommType type,
                             uint32_t ranges, bool accumulate,
                             const char *where) = 0;
  virtual void allReduce(DeviceAddress data, int64_t elements,
                         plan::CommType type, const char *where) = 0;

  /// Bytes that collectives have brought from other ranks so far. Exact when the
  /// device is synchronised.
  virtual uint64_t receivedBytes() const = 0;
};

/// One rank's end of a run. exchange() and openChannel() are called by one
/// thread at a time, in the same order on all ranks; abort() by any.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  /// A channel between `members` (ascending, this rank among them), whose work
  /// runs on `stream` of `device`. Only the members call this; ranks that are in
  /// different groups of one kind call it at the same time, each with its own
  /// group. `name` (for messages) is the same on all members, and unique to the
  /// group kind and stream. The device must outlive the channel.
  virtual std::unique_ptr<Channel>
  openChannel(const std::vector<int64_t> &members, Device &device,
              uint16_t stream, const std::string &name) = 0;

  /// Gives `mine` to all ranks and returns what each gave, in rank order.
  /// `what` names it in messages. Waits for all ranks.
  virtual std::vector<std::string> exchange(std::string_view mine,
                                            std::string_view what) = 0;

  /// Tells all ranks that this one failed: their pending and later calls throw
  /// 7003 with `cause`. Later calls change nothing.
  virtual void abort(const std::string &cause) noexcept = 0;

  /// Ends the run on all ranks by what is wrong between them. By any thread; the
  /// first failure stays.
  virtual void fail(const Failure &failure) noexcept { abort(failure.text); }
  /// What has ended the run, as far as this rank knows; asks nobody. By any
  /// thread.
  virtual std::optional<Failure> failure() const { return std::nullopt; }
};

/// The members of `rank`'s group of a kind (see Mesh in plan.fbs), ascending.
std::vector<int64_t> groupMembers(plan::Group group, int64_t ranks,
                                  int64_t shards, int64_t rank);

} // namespace fsdpq::rt
