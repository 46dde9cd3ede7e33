#include "tools/fsdpq-run/ranks/ListeningSocket.h"

#include "runtime/support/Error.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

static Error failure(int code, uint16_t port) {
  if (code == EADDRINUSE)
    return Error(
        6053, ExitCode::BadInput,
        "port " + std::to_string(port) + " of this host is in use", "",
        "another run may have it: give another --master_port, or none");
  return Error(6054, ExitCode::RunFailure,
               std::string("the ranks have no place to meet: ") +
                   std::strerror(code),
               "port " + std::to_string(port));
}

ListeningSocket::ListeningSocket(uint16_t port) {
  descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0)
    throw failure(errno, port);
  // A port whose last run has just ended is free.
  const int yes = 1;
  ::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  if (::bind(descriptor_, reinterpret_cast<sockaddr *>(&address), size) != 0 ||
      ::listen(descriptor_, SOMAXCONN) != 0 ||
      ::getsockname(descriptor_, reinterpret_cast<sockaddr *>(&address),
                    &size) != 0) {
    const Error error = failure(errno, port);
    ::close(descriptor_);
    throw error;
  }
  port_ = ntohs(address.sin_port);
}

ListeningSocket::~ListeningSocket() { ::close(descriptor_); }

} // namespace fsdpq::run
