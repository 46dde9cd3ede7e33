#include "test/unit/comm/RankProcesses.h"

#include "test/unit/comm/Ranks.h"

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace fsdpq::test {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

RankProcess::RankProcess(int64_t rank, int64_t size, uint16_t port,
                         const std::vector<std::string> &options) {
  std::vector<std::string> words = {FSDPQ_COMM_RANK, std::to_string(rank),
                                    std::to_string(size), std::to_string(port)};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  EXPECT_EQ(::posix_spawn(&process, FSDPQ_COMM_RANK, &actions, nullptr,
                          arguments.data(), environ),
            0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  output = ends[0];
}

RankProcess::RankProcess(RankProcess &&other) noexcept
    : process(std::exchange(other.process, -1)),
      output(std::exchange(other.output, -1)), read(std::move(other.read)) {}

RankProcess::~RankProcess() {
  if (process < 0)
    return;
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  ::close(output);
}

void RankProcess::signal(int number) const { ::kill(process, number); }

std::string RankProcess::line(milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  while (true) {
    if (const size_t end = read.find('\n'); end != std::string::npos) {
      const std::string line = read.substr(0, end);
      read.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd waits = {output, POLLIN, 0};
    if (left.count() <= 0 ||
        ::poll(&waits, 1, static_cast<int>(left.count())) <= 0)
      return "late";
    char bytes[4096];
    const ssize_t got = ::read(output, bytes, sizeof bytes);
    if (got <= 0)
      return "";
    read.append(bytes, static_cast<size_t>(got));
  }
}

std::string RankProcess::lastLine(milliseconds limit) {
  const std::string first = line(limit);
  return first == "ready" ? line(limit) : first;
}

std::vector<RankProcess> startRanks(int64_t size,
                                    const std::vector<std::string> &options) {
  const uint16_t port = freePort();
  std::vector<RankProcess> ranks;
  for (int64_t rank = 0; rank < size; ++rank)
    ranks.emplace_back(rank, size, port, options);
  for (RankProcess &rank : ranks)
    EXPECT_EQ(rank.line(), "ready");
  return ranks;
}

} // namespace fsdpq::test
