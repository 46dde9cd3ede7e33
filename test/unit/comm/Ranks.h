//===- Ranks.h - Ranks as threads of a test ---------------------*- C++ -*-===//
#pragma once

#include "runtime/comm/Communicator.h"
#include "runtime/device/cpu/CpuDevice.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace fsdpq::test {

/// A kind of communicator, under test.
struct RankKind {
  const char *name;
  std::vector<int64_t> sizes; ///< numbers of ranks to try
  /// That of one rank; called by all at the same time. `run` is what they
  /// share.
  std::function<std::function<std::unique_ptr<rt::Communicator>(int64_t rank)>(
      int64_t size, std::chrono::milliseconds timeout)>
      start;
};

inline std::ostream &operator<<(std::ostream &out, const RankKind &kind) {
  return out << kind.name;
}

RankKind soloRank();
RankKind inProcessRanks();
RankKind glooRanks();

/// How a rank ended: 0 and "", or an Error.
struct RankEnd {
  int id = 0;
  std::string message;
};

/// What a rank has: a communicator, and a device with streams 0, 1 and 2.
class TestRank {
public:
  TestRank(rt::Communicator &communicator, std::chrono::microseconds delays)
      : communicator(communicator),
        device({1, false, {uint64_t(communicator.rank()) * 100 + 1, delays}}) {
    device.prepare(3, 0);
  }
  ~TestRank();

  int64_t rank() const { return communicator.rank(); }
  int64_t size() const { return communicator.size(); }

  /// Lives as long as the rank.
  rt::Channel &open(const std::vector<int64_t> &members, uint16_t stream = 0,
                    const std::string &name = "test");
  /// Of all ranks.
  rt::Channel &openWorld(uint16_t stream = 0, const std::string &name = "test");

  rt::Communicator &communicator;
  rt::CpuDevice device;

private:
  std::vector<std::unique_ptr<rt::Channel>> channels;
};

struct RunOptions {
  std::chrono::milliseconds timeout{20000};
  std::chrono::microseconds delays{0}; ///< before each task of a stream
};

/// Calls `action` on a thread for each of `size` ranks. A rank that throws
/// tells the others.
std::vector<RankEnd> onRanks(const RankKind &kind, int64_t size,
                             const std::function<void(TestRank &)> &action,
                             const RunOptions &options = {});

void expectSuccess(const std::vector<RankEnd> &ends);

template <typename T>
rt::DeviceAddress address(std::vector<T> &values) {
  return reinterpret_cast<rt::DeviceAddress>(values.data());
}

/// A port of the loopback address that is free now.
uint16_t freePort();
/// A socket that listens on the loopback address, and its port.
std::pair<int, uint16_t> listeningSocket();

} // namespace fsdpq::test
