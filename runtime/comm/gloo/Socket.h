//===- Socket.h - TCP sockets of the control plane --------------*- C++ -*-===//
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

namespace fsdpq::rt {

/// Owns a descriptor.
class Socket {
public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket &&other) noexcept : descriptor_(other.release()) {}
  Socket &operator=(Socket &&other) noexcept;

  int descriptor() const { return descriptor_; }
  bool isOpen() const { return descriptor_ >= 0; }
  int release();
  void close();

private:
  int descriptor_;
};

/// An address with a port.
class SocketAddress {
public:
  SocketAddress() = default;
  SocketAddress(const sockaddr *address, socklen_t size);

  const sockaddr *get() const {
    return reinterpret_cast<const sockaddr *>(&storage);
  }
  socklen_t size() const { return length; }

  bool isLoopback() const;
  /// "127.0.0.1", "::1"
  std::string host() const;
  /// "127.0.0.1:29500", "[::1]:29500"
  std::string text() const;

private:
  sockaddr_storage storage = {};
  socklen_t length = 0;
};

/// The addresses of a host's name or address. `problem` says why there is none.
std::vector<SocketAddress> resolve(const std::string &host, uint16_t port,
                                   std::string &problem);

SocketAddress ownAddress(int descriptor);
SocketAddress otherAddress(int descriptor);

/// A socket that listens, does not block and is not inherited. It is not open
/// on failure, and errno says why.
Socket listenAt(const SocketAddress &address);
/// Makes a socket that somebody else opened like that.
void setUp(int descriptor);

/// Waits up to `limit` for a connection. `problem` says why there is none.
Socket connectTo(const SocketAddress &address, std::chrono::milliseconds limit,
                 std::string &problem);

/// Sends what can be sent without waiting; how many bytes, -1 if the connection
/// is broken.
int64_t sendSome(int descriptor, std::string_view bytes);

} // namespace fsdpq::rt
