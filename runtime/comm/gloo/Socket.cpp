#include "runtime/comm/gloo/Socket.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace fsdpq::rt {

Socket &Socket::operator=(Socket &&other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}

int Socket::release() { return std::exchange(descriptor_, -1); }

void Socket::close() {
  if (isOpen())
    ::close(release());
}

//===--- Addresses ----------------------------------------------------------//

SocketAddress::SocketAddress(const sockaddr *address, socklen_t size)
    : length(size) {
  std::memcpy(&storage, address, size);
}

bool SocketAddress::isLoopback() const {
  if (storage.ss_family == AF_INET) {
    const auto *address = reinterpret_cast<const sockaddr_in *>(&storage);
    return ntohl(address->sin_addr.s_addr) >> 24 == 127;
  }
  const auto *address = reinterpret_cast<const sockaddr_in6 *>(&storage);
  return storage.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&address->sin6_addr);
}

std::string SocketAddress::host() const {
  char text[NI_MAXHOST] = "?";
  ::getnameinfo(get(), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

std::string SocketAddress::text() const {
  const auto *v4 = reinterpret_cast<const sockaddr_in *>(&storage);
  const auto *v6 = reinterpret_cast<const sockaddr_in6 *>(&storage);
  return storage.ss_family == AF_INET6
             ? "[" + host() + "]:" + std::to_string(ntohs(v6->sin6_port))
             : host() + ":" + std::to_string(ntohs(v4->sin_port));
}

std::vector<SocketAddress> resolve(const std::string &host, uint16_t port,
                                   std::string &problem) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo *found = nullptr;
  const int code =
      ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    problem = "'" + host + "' is no known host: " + ::gai_strerror(code);
    return {};
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo *entry = found; entry; entry = entry->ai_next)
    addresses.emplace_back(entry->ai_addr, entry->ai_addrlen);
  ::freeaddrinfo(found);
  return addresses;
}

template <typename Ask>
static SocketAddress askAddress(const Ask &ask) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  ask(reinterpret_cast<sockaddr *>(&storage), &size);
  return SocketAddress(reinterpret_cast<const sockaddr *>(&storage), size);
}

SocketAddress ownAddress(int descriptor) {
  return askAddress([&](sockaddr *address, socklen_t *size) {
    ::getsockname(descriptor, address, size);
  });
}

SocketAddress otherAddress(int descriptor) {
  return askAddress([&](sockaddr *address, socklen_t *size) {
    ::getpeername(descriptor, address, size);
  });
}

//===--- Connections --------------------------------------------------------//

void setUp(int descriptor) {
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  const int yes = 1; // messages are small and awaited
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

Socket listenAt(const SocketAddress &address) {
  Socket socket(
      ::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.isOpen())
    return socket;
  // A port whose last run has just ended is free.
  const int yes = 1;
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.descriptor(), address.get(), address.size()) != 0 ||
      ::listen(socket.descriptor(), SOMAXCONN) != 0) {
    const int code = errno;
    socket.close();
    errno = code;
    return socket;
  }
  setUp(socket.descriptor());
  return socket;
}

Socket connectTo(const SocketAddress &address, std::chrono::milliseconds limit,
                 std::string &problem) {
  Socket socket(
      ::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto fail = [&](int code) {
    problem = address.text() + ": " + std::strerror(code);
    return Socket();
  };
  if (!socket.isOpen())
    return fail(errno);
  setUp(socket.descriptor());
  if (::connect(socket.descriptor(), address.get(), address.size()) != 0) {
    if (errno != EINPROGRESS)
      return fail(errno);
    pollfd waits = {socket.descriptor(), POLLOUT, 0};
    if (::poll(&waits, 1, static_cast<int>(limit.count())) <= 0)
      return fail(ETIMEDOUT);
    int code = 0;
    socklen_t size = sizeof code;
    ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &code, &size);
    if (code != 0)
      return fail(code);
  }
  // Where nobody listens, a connection may be made from the port to itself.
  if (ownAddress(socket.descriptor()).text() == address.text())
    return fail(ECONNREFUSED);
  return socket;
}

int64_t sendSome(int descriptor, std::string_view bytes) {
  ssize_t sent;
  do
    sent = ::send(descriptor, bytes.data(), bytes.size(),
                  MSG_DONTWAIT | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return 0;
  return sent;
}

} // namespace fsdpq::rt
