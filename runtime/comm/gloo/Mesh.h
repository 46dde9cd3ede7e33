//===- Mesh.h - Connections for data between some ranks ---------*- C++ -*-===//
#pragma once

#include "runtime/comm/gloo/ControlPlane.h"

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>

namespace fsdpq::rt {

/// What makes Gloo's connections, at the own address `host` (numbers); a thread
/// of it moves their data. Throws 7017.
std::shared_ptr<gloo::transport::Device>
makeDataDevice(const std::string &host);

/// A Gloo pair between this rank and each other member.
class Mesh {
public:
  /// Called by all members alike; `what` is what for. Throws 7001-7005, 7018.
  Mesh(ControlPlane &control,
       const std::shared_ptr<gloo::transport::Device> &device,
       const std::vector<int64_t> &members, const std::string &what);
  /// The other ends get all that was sent, then the end.
  ~Mesh();
  Mesh(const Mesh &) = delete;
  Mesh &operator=(const Mesh &) = delete;

  std::unique_ptr<gloo::transport::UnboundBuffer> buffer(void *data,
                                                         size_t bytes) {
    return context->createUnboundBuffer(data, bytes);
  }

  /// Ends all connections at once, after a failure.
  void cut() noexcept;

private:
  void connect(ControlPlane &control, const std::vector<std::string> &addresses,
               const std::vector<int64_t> &members, const std::string &what);

  std::shared_ptr<gloo::transport::Context> context;
};

} // namespace fsdpq::rt
