#include "test/unit/comm/Ranks.h"

#include "runtime/comm/Solo.h"
#include "runtime/comm/gloo/GlooCommunicator.h"
#include "runtime/comm/inprocess/InProcess.h"
#include "runtime/support/Error.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <numeric>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace fsdpq::test {

using namespace fsdpq::rt;

RankKind soloRank() {
  return {"Solo", {1}, [](int64_t, std::chrono::milliseconds) {
            return [](int64_t) { return makeSolo(); };
          }};
}

RankKind inProcessRanks() {
  return {"InProcess",
          {1, 2, 3, 4, 8},
          [](int64_t size, std::chrono::milliseconds timeout) {
            auto ranks =
                std::make_shared<std::vector<std::unique_ptr<Communicator>>>(
                    makeInProcessRanks(size, timeout));
            return [ranks](int64_t rank) {
              return std::move((*ranks)[static_cast<size_t>(rank)]);
            };
          }};
}

RankKind glooRanks() {
  return {"Gloo",
          {1, 2, 3, 4},
          [](int64_t size, std::chrono::milliseconds timeout) {
            const auto [descriptor, port] = listeningSocket();
            return [size, timeout, descriptor = descriptor,
                    port = port](int64_t rank) {
              GlooOptions options;
              options.rank = rank;
              options.size = size;
              options.masterPort = port;
              options.listenFd = rank == 0 ? descriptor : -1;
              options.connectTimeout = std::chrono::seconds(20);
              options.collectiveTimeout = timeout;
              return connectGloo(options);
            };
          }};
}

TestRank::~TestRank() {
  try { // streams may be at work in a channel still
    device.synchronize();
  } catch (const Error &) {
  }
}

Channel &TestRank::open(const std::vector<int64_t> &members, uint16_t stream,
                        const std::string &name) {
  channels.push_back(communicator.openChannel(members, device, stream, name));
  return *channels.back();
}

Channel &TestRank::openWorld(uint16_t stream, const std::string &name) {
  std::vector<int64_t> all(static_cast<size_t>(size()));
  std::iota(all.begin(), all.end(), int64_t(0));
  return open(all, stream, name);
}

std::vector<RankEnd> onRanks(const RankKind &kind, int64_t size,
                             const std::function<void(TestRank &)> &action,
                             const RunOptions &options) {
  const auto connect = kind.start(size, options.timeout);
  std::vector<RankEnd> ends(static_cast<size_t>(size));
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < ends.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto communicator = connect(static_cast<int64_t>(rank));
        TestRank own(*communicator, options.delays);
        try {
          action(own);
          own.device.synchronize();
        } catch (const Error &error) {
          communicator->abort(error.what());
          throw;
        }
      } catch (const Error &error) {
        ends[rank] = {error.id(), error.what()};
      }
    });
  threads.clear();
  return ends;
}

void expectSuccess(const std::vector<RankEnd> &ends) {
  for (size_t rank = 0; rank < ends.size(); ++rank)
    EXPECT_EQ(ends[rank].id, 0)
        << "rank " << rank << ": " << ends[rank].message;
}

std::pair<int, uint16_t> listeningSocket() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(descriptor, reinterpret_cast<sockaddr *>(&address), size) != 0 ||
      ::listen(descriptor, SOMAXCONN) != 0 ||
      ::getsockname(descriptor, reinterpret_cast<sockaddr *>(&address),
                    &size) != 0)
    throw systemError("listening", "loopback");
  return {descriptor, ntohs(address.sin_port)};
}

uint16_t freePort() {
  const auto [descriptor, port] = listeningSocket();
  ::close(descriptor);
  return port;
}

} // namespace fsdpq::test
