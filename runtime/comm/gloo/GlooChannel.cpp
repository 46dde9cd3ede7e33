#include "runtime/comm/gloo/GlooChannel.h"

#include "runtime/comm/gloo/Signals.h"

#include <algorithm>
#include <cstring>
#include <gloo/transport/unbound_buffer.h>

namespace fsdpq::rt {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// How long a failure that all ranks will be told may take to be known here.
static constexpr milliseconds causeTime{1000};

/// The tag of notes. Those of data have the highest bit.
static constexpr uint64_t noteTag = 0;

struct GlooChannel::Swap {
  const CollectiveCall &call;
  const char *where;
  std::span<const std::byte *const> send;
  std::span<std::byte *const> receive;
  int64_t bytes;
  Clock::time_point deadline;
  const Peer *current = nullptr; ///< whose buffers are used

  bool isShort() const { return bytes <= shortBytes; }
};

static uint64_t dataTag(const CollectiveCall &call, uint64_t swaps,
                        int64_t bytes) {
  // FNV-1a of all that the note says.
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t field :
       {static_cast<uint64_t>(call.kind), static_cast<uint64_t>(call.type),
        static_cast<uint64_t>(call.accumulate),
        static_cast<uint64_t>(call.ranges), call.sequence,
        static_cast<uint64_t>(call.bytes), swaps, static_cast<uint64_t>(bytes)})
    for (int shift = 0; shift < 64; shift += 8)
      hash = (hash ^ (field >> shift & 0xff)) * 0x100000001b3;
  return hash | uint64_t(1) << 63;
}

GlooChannel::GlooChannel(
    ControlPlane &control,
    const std::shared_ptr<gloo::transport::Device> &dataDevice,
    milliseconds timeout, const std::vector<int64_t> &members, Device &device,
    uint16_t stream, const std::string &name)
    : HostChannel(members, control.rank(), device, stream, name),
      control(control), timeout(timeout) {
  const std::string what = "the opening of the channel '" + name + "'";
  if (members.size() > 1)
    mesh = std::make_unique<Mesh>(control, dataDevice, members, what);
  for (int i = 0; i < static_cast<int>(members.size()); ++i) {
    if (i == position())
      continue;
    Peer peer;
    peer.position = i;
    peer.mine = std::make_unique<Note>();
    peer.theirs = std::make_unique<Note>();
    peer.sendNote = mesh->buffer(peer.mine.get(), sizeof(Note));
    peer.receiveNote = mesh->buffer(peer.theirs.get(), sizeof(Note));
    peers.push_back(std::move(peer));
  }
  onFailure =
      std::make_unique<ControlPlane::OnFailure>(control, [this] { cancel(); });
}

GlooChannel::~GlooChannel() {
  onFailure.reset();
  // Pairs whose buffers are gone while they are in use would never rest.
  if (mesh && control.failure())
    mesh->cut();
}

/// Ends the waits of the stream.
void GlooChannel::cancel() {
  std::lock_guard lock(mutex);
  for (Peer &peer : peers)
    for (const Buffer *buffer :
         {&peer.sendNote, &peer.receiveNote, &peer.sendData, &peer.receiveData})
      if (*buffer) {
        (*buffer)->abortWaitSend();
        (*buffer)->abortWaitRecv();
      }
}

//===--- Failures -----------------------------------------------------------//

void GlooChannel::stopIfFailed(const Swap &swap) const {
  if (const auto failure = control.failure())
    throw failure->at("rank " + std::to_string(control.rank()) + ", " +
                      describe(swap.call, swap.where));
}

void GlooChannel::fail(const Swap &swap, const Failure &failure) {
  control.fail(failure);
  throw control.failure()->at("rank " + std::to_string(control.rank()) + ", " +
                              describe(swap.call, swap.where));
}

void GlooChannel::failLate(const Swap &swap) {
  std::vector<int64_t> missing, unfinished;
  for (Peer &peer : peers) {
    // Those after the first that is late have not been waited for.
    try {
      peer.noteCame =
          peer.noteCame || peer.receiveNote->waitRecv(milliseconds(0));
    } catch (const std::exception &) {
    }
    if (!peer.noteCame)
      missing.push_back(rankOf(peer));
    else if (!peer.noteSent || !peer.dataCame || !peer.dataSent)
      unfinished.push_back(rankOf(peer));
  }
  fail(swap,
       {7004, rankList(missing.empty() ? unfinished : missing) +
                  (missing.empty() ? " did not finish " : " did not come to ") +
                  describe(swap.call, swap.where) + " within " +
                  durationText(timeout)});
}

void GlooChannel::failBroken(const Swap &swap, const std::string &problem) {
  control.awaitFailure(causeTime);
  const std::string who =
      swap.current ? "rank " + std::to_string(rankOf(*swap.current)) : "a rank";
  fail(swap, {7001, who + " is gone: its connection for data broke in " +
                        describe(swap.call, swap.where) + ": " + problem});
}

void GlooChannel::compare(const Peer &peer, const Swap &swap) {
  const Note &theirs = *peer.theirs;
  if (theirs.call == swap.call && theirs.swaps == swaps &&
      theirs.bytes == swap.bytes)
    return;
  fail(swap, {7005, "rank " + std::to_string(rankOf(peer)) + " calls " +
                        theirs.call.text() + " where rank " +
                        std::to_string(control.rank()) + " calls " +
                        describe(swap.call, swap.where)});
}

//===--- Swaps --------------------------------------------------------------//

void GlooChannel::post(Swap &swap) {
  const uint64_t tag = dataTag(swap.call, swaps, swap.bytes);
  const auto bytes = static_cast<size_t>(swap.bytes);
  for (Peer &peer : peers) {
    swap.current = &peer;
    const auto position = static_cast<size_t>(peer.position);
    peer.noteCame = peer.noteSent = false;
    peer.dataCame = peer.dataSent = swap.isShort();
    peer.mine->call = swap.call;
    peer.mine->swaps = swaps;
    peer.mine->bytes = swap.bytes;
    size_t noteBytes = offsetof(Note, data);
    if (swap.isShort() && bytes > 0) {
      std::memcpy(peer.mine->data, swap.send[position], bytes);
      noteBytes += bytes;
    }
    if (!swap.isShort()) {
      std::lock_guard lock(mutex);
      // Gloo does not write to what it sends.
      peer.sendData =
          mesh->buffer(const_cast<std::byte *>(swap.send[position]), bytes);
      peer.receiveData = mesh->buffer(swap.receive[position], bytes);
    }
    // First what is taken, so that who is ready can send at once.
    peer.receiveNote->recv(peer.position, noteTag, 0, sizeof(Note));
    if (!swap.isShort())
      peer.receiveData->recv(peer.position, tag, 0, bytes);
    peer.sendNote->send(peer.position, noteTag, 0, noteBytes);
    if (!swap.isShort())
      peer.sendData->send(peer.position, tag, 0, bytes);
  }
}

/// Waits for all that was posted. All notes come first: they come even from
/// ranks that call something else.
void GlooChannel::await(Swap &swap) {
  const auto wait = [&](Peer &peer, auto call, bool &done) {
    swap.current = &peer;
    const auto left =
        std::chrono::ceil<milliseconds>(swap.deadline - Clock::now());
    if (!call(std::max(left, milliseconds(0)))) {
      stopIfFailed(swap);
      throw std::runtime_error("the wait was ended");
    }
    done = true;
  };
  for (Peer &peer : peers) {
    wait(
        peer, [&](auto limit) { return peer.receiveNote->waitRecv(limit); },
        peer.noteCame);
    compare(peer, swap);
  }
  for (Peer &peer : peers) {
    if (swap.isShort() && swap.bytes > 0)
      std::memcpy(swap.receive[static_cast<size_t>(peer.position)],
                  peer.theirs->data, static_cast<size_t>(swap.bytes));
    if (!swap.isShort())
      wait(
          peer, [&](auto limit) { return peer.receiveData->waitRecv(limit); },
          peer.dataCame);
  }
  for (Peer &peer : peers) {
    wait(
        peer, [&](auto limit) { return peer.sendNote->waitSend(limit); },
        peer.noteSent);
    if (!swap.isShort())
      wait(
          peer, [&](auto limit) { return peer.sendData->waitSend(limit); },
          peer.dataSent);
  }
}

void GlooChannel::swap(const CollectiveCall &call, const char *where,
                       std::span<const std::byte *const> send,
                       std::span<std::byte *const> receive, int64_t bytes) {
  PipeSignalBlocked blocked;
  Swap swap{call, where, send, receive, bytes, Clock::now() + timeout};
  stopIfFailed(swap);
  ++swaps;
  // Who ends must not leave anything to Gloo that points to the caller's
  // memory.
  const auto dropData = [this] {
    std::lock_guard lock(mutex);
    for (Peer &peer : peers) {
      peer.sendData.reset();
      peer.receiveData.reset();
    }
  };
  std::string problem;
  try {
    post(swap);
    return await(swap);
  } catch (const Error &) {
    mesh->cut();
    dropData();
    throw;
  } catch (const std::exception &error) {
    problem = error.what();
  }
  mesh->cut();
  if (Clock::now() >= swap.deadline && !control.failure())
    failLate(swap);
  dropData();
  failBroken(swap, problem);
}

} // namespace fsdpq::rt
