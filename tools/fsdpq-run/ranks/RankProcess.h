//===- RankProcess.h - A child process that is a rank -----------*- C++ -*-===//
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace fsdpq::run {

struct RankProcessOptions {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment; ///< "NAME=value"
  sigset_t signalMask;                  ///< that it starts with
  /// Keeps the standard streams; of others the standard error is piped, and the
  /// rest goes nowhere.
  bool isFirst = false;
  int inherited = -1; ///< a descriptor that stays open in it, or -1
};

/// Handle of the process, which is killed with it, and with the thread that
/// started it.
class RankProcess {
public:
  /// Error 6054 (RunFailure) if the system gives no process. A program that
  /// cannot be executed ends with 127 and says why.
  explicit RankProcess(const RankProcessOptions &options);
  ~RankProcess();
  RankProcess(RankProcess &&other) noexcept;
  RankProcess(const RankProcess &) = delete;
  RankProcess &operator=(const RankProcess &) = delete;

  /// The status of waitpid once it has ended. Not asked again after that.
  std::optional<int> pollStatus();
  void signal(int number) const;

  /// The descriptor that its standard error arrives at; -1: none, or closed.
  int output() const { return output_; }
  /// Some of what has arrived, "" if nothing has; closes the descriptor at the
  /// end of the stream.
  std::string readOutput();
  void closeOutput();

private:
  pid_t process = -1; ///< -1: has ended
  int output_ = -1;
};

} // namespace fsdpq::run
