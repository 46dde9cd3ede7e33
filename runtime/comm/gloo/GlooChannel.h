//===- GlooChannel.h - Collectives over Gloo's connections ------*- C++ -*-===//
#pragma once

#include "runtime/comm/HostChannel.h"
#include "runtime/comm/gloo/Mesh.h"

#include <mutex>

namespace fsdpq::rt {

/// Each swap gives every other member a note that says which call it belongs
/// to, with the data in it if they are short. Longer data follow under a tag
/// made of the call: ranks that call different collectives never take each
/// other's data, and the notes tell them so.
class GlooChannel final : public HostChannel {
public:
  GlooChannel(ControlPlane &control,
              const std::shared_ptr<gloo::transport::Device> &dataDevice,
              std::chrono::milliseconds timeout,
              const std::vector<int64_t> &members, Device &device,
              uint16_t stream, const std::string &name);
  ~GlooChannel() override;

private:
  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

  /// Data up to here travel within the note.
  static constexpr int64_t shortBytes = 4096;

  struct Note {
    CollectiveCall call;
    uint64_t swaps; ///< of the channel so far, this one counted
    int64_t bytes;
    std::byte data[shortBytes];
  };
  struct Peer {
    int position;
    std::unique_ptr<Note> mine, theirs;
    Buffer sendNote, receiveNote;
    /// Of the latest long data. They stay until the next: Gloo's thread has
    /// just left them when a wait ends, and their end would wait for it.
    Buffer sendData, receiveData;
    bool noteCame = false, noteSent = false, dataCame = false, dataSent = false;
  };
  struct Swap;

  void swap(const CollectiveCall &call, const char *where,
            std::span<const std::byte *const> send,
            std::span<std::byte *const> receive, int64_t bytes) override;
  void post(Swap &swap);
  void await(Swap &swap);
  void compare(const Peer &peer, const Swap &swap);
  void cancel();
  void stopIfFailed(const Swap &swap) const;
  [[noreturn]] void fail(const Swap &swap, const Failure &failure);
  [[noreturn]] void failLate(const Swap &swap);
  [[noreturn]] void failBroken(const Swap &swap, const std::string &problem);
  int64_t rankOf(const Peer &peer) const {
    return ranks()[static_cast<size_t>(peer.position)];
  }

  ControlPlane &control;
  const std::chrono::milliseconds timeout;
  std::unique_ptr<Mesh> mesh; ///< none for a member that is alone
  std::vector<Peer> peers;
  uint64_t swaps = 0;

  std::mutex mutex; ///< guards the existence of the buffers
  std::unique_ptr<ControlPlane::OnFailure> onFailure;
};

} // namespace fsdpq::rt
