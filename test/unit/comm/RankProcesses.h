//===- RankProcesses.h - Starts and ends ranks for a test -------*- C++ -*-===//
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace fsdpq::test {

/// A process of RankProcess.cpp. It is killed with this.
class RankProcess {
public:
  RankProcess(int64_t rank, int64_t size, uint16_t port,
              const std::vector<std::string> &options = {});
  ~RankProcess();
  RankProcess(RankProcess &&other) noexcept;
  RankProcess &operator=(RankProcess &&) = delete;

  void signal(int number) const;
  /// The next line it says; "" at its end, or "late" after `limit`.
  std::string line(std::chrono::milliseconds limit = std::chrono::seconds(15));
  /// The line after "ready", if it says that.
  std::string
  lastLine(std::chrono::milliseconds limit = std::chrono::seconds(15));

private:
  pid_t process;
  int output;
  std::string read;
};

/// Ranks 0 to size - 1, all of which are ready.
std::vector<RankProcess>
startRanks(int64_t size, const std::vector<std::string> &options = {});

} // namespace fsdpq::test
