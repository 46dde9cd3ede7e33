#include "tools/fsdpq-run/ranks/Launcher.h"

#include "runtime/support/Error.h"
#include "tools/fsdpq-run/ranks/JobToken.h"
#include "tools/fsdpq-run/ranks/LinePrefixer.h"
#include "tools/fsdpq-run/ranks/ListeningSocket.h"
#include "tools/fsdpq-run/ranks/RankProcess.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <string_view>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;
using Clock = std::chrono::steady_clock;

namespace {

/// While this lives, the signals that the launcher deals with arrive as bytes
/// of a descriptor.
class SignalQueue {
public:
  SignalQueue() {
    // A parent may have left it ignored, and then nobody could be waited for.
    std::signal(SIGCHLD, SIG_DFL);
    ::sigemptyset(&taken);
    for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP})
      if (number != SIGHUP || !isIgnored(number)) // as nohup asks for
        ::sigaddset(&taken, number);
    ::sigprocmask(SIG_BLOCK, &taken, &before_);
    // What the ranks say is lost when nobody reads it, but their work is not.
    previousPipe = std::signal(SIGPIPE, SIG_IGN);
    descriptor_ = ::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) {
      const Error error = rt::systemError("waiting for signals", "");
      restore();
      throw error;
    }
  }
  ~SignalQueue() {
    ::close(descriptor_);
    restore();
  }
  SignalQueue(const SignalQueue &) = delete;
  SignalQueue &operator=(const SignalQueue &) = delete;

  int descriptor() const { return descriptor_; }
  const sigset_t &before() const { return before_; }

  std::optional<signalfd_siginfo> next() {
    signalfd_siginfo info;
    if (::read(descriptor_, &info, sizeof info) != sizeof info)
      return std::nullopt;
    return info;
  }

private:
  static bool isIgnored(int number) {
    struct sigaction action;
    return ::sigaction(number, nullptr, &action) == 0 &&
           action.sa_handler == SIG_IGN;
  }

  void restore() {
    std::signal(SIGPIPE, previousPipe);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

  sigset_t taken, before_;
  void (*previousPipe)(int);
  int descriptor_ = -1;
};

void writeAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd ready = {STDERR_FILENO, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (written <= 0)
      return; // nobody reads
    text.remove_prefix(static_cast<size_t>(written));
  }
}

int coreCount() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0)
    return CPU_COUNT(&cores);
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

/// A rank at work, and how it ended.
struct Rank {
  RankProcess process;
  LinePrefixer prefixer;
  int number = 0;            ///< among the ranks of the run
  std::optional<int> status; ///< of waitpid, once it has ended
  bool wasEnded = false;     ///< by a signal of the launcher
  bool wasKilled = false;    ///< and did not obey the first one

  bool isRunning() const { return !status; }
  int killedBy() const { return WIFSIGNALED(*status) ? WTERMSIG(*status) : 0; }
  int exitCode() const {
    return killedBy() ? static_cast<int>(ExitCode::PeerFailure)
                      : WEXITSTATUS(*status);
  }
};

class Launcher {
public:
  Launcher(const RankSetup &setup, const LaunchOptions &options)
      : setup(setup), options(options) {}

  int run() {
    start();
    while (isAnyRunning()) {
      waitForSomething();
      while (const auto info = signals.next())
        handleSignal(*info);
      collectEnded();
      hurryTheRest();
    }
    return conclude();
  }

private:
  //===--- Start ----------------------------------------------------------===//

  void start() {
    std::optional<ListeningSocket> socket;
    uint16_t port = setup.masterPort;
    if (setup.isOnOneHost()) {
      socket.emplace(port);
      port = socket->port();
    }
    ranks.reserve(static_cast<size_t>(setup.starts));
    for (int64_t local = 0; local < setup.starts; ++local) {
      const int64_t number = setup.rank + local;
      RankProcessOptions process;
      process.program = options.program;
      process.arguments = options.arguments;
      process.environment = environmentOf(number, local, port);
      process.signalMask = signals.before();
      process.isFirst = number == 0;
      if (number == 0 && socket) {
        process.inherited = socket->descriptor();
        process.environment.push_back(std::string(listenVariable) + "=" +
                                      std::to_string(process.inherited));
      }
      // If one cannot be started, the others end with their handles.
      ranks.push_back({RankProcess(process),
                       LinePrefixer("[rank " + std::to_string(number) + "] "),
                       static_cast<int>(number), std::nullopt, false});
    }
  }

  /// "NAME=value" of all variables of a rank.
  std::vector<std::string> environmentOf(int64_t number, int64_t local,
                                         uint16_t port) const {
    std::map<std::string, std::string> mine = {
        {"RANK", std::to_string(number)},
        {"WORLD_SIZE", std::to_string(setup.ranks)},
        {"LOCAL_RANK", std::to_string(local)},
        {"LOCAL_WORLD_SIZE", std::to_string(setup.localRanks)},
        {"MASTER_ADDR", setup.masterAddress},
        {"MASTER_PORT", std::to_string(port)},
        {tokenVariable, setup.token}};
    if (options.divideThreads && !std::getenv("OMP_NUM_THREADS"))
      mine["OMP_NUM_THREADS"] =
          std::to_string(std::max<int64_t>(1, coreCount() / setup.starts));
    std::vector<std::string> all;
    for (char **entry = environ; *entry; ++entry) {
      const std::string text = *entry;
      const std::string name = text.substr(0, text.find('='));
      if (!mine.contains(name) && name != listenVariable)
        all.push_back(text);
    }
    for (const auto &[name, value] : mine)
      all.push_back(name + "=" + value);
    return all;
  }

  //===--- Work -----------------------------------------------------------===//

  bool isAnyRunning() const {
    return std::any_of(ranks.begin(), ranks.end(),
                       [](const Rank &rank) { return rank.isRunning(); });
  }

  void waitForSomething() {
    std::vector<pollfd> ready = {{signals.descriptor(), POLLIN, 0}};
    std::vector<Rank *> readers;
    for (Rank &rank : ranks)
      if (rank.process.output() >= 0) {
        ready.push_back({rank.process.output(), POLLIN, 0});
        readers.push_back(&rank);
      }
    ::poll(ready.data(), ready.size(), pollTime());
    for (size_t i = 0; i < readers.size(); ++i)
      if (ready[i + 1].revents)
        passOutputOn(*readers[i]);
  }

  /// Milliseconds until something is due; -1: nothing is.
  int pollTime() const {
    if (!deadline)
      return -1;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
    return static_cast<int>(std::max<int64_t>(0, left.count()));
  }

  void passOutputOn(Rank &rank) {
    writeAll(rank.prefixer.add(rank.process.readOutput()));
  }

  /// What has arrived and no more: a child of the rank may hold the stream
  /// open.
  void passRestOfOutputOn(Rank &rank) {
    while (rank.process.output() >= 0) {
      const std::string text = rank.process.readOutput();
      if (text.empty())
        break;
      writeAll(rank.prefixer.add(text));
    }
    writeAll(rank.prefixer.finish());
    rank.process.closeOutput();
  }

  void handleSignal(const signalfd_siginfo &info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD)
      return;
    // Terminals, job managers and the like may send one several times at once.
    constexpr std::chrono::seconds together{1};
    if (stoppedBy && Clock::now() - stoppedAt < together)
      return;
    if (stoppedBy) {
      endAll(SIGKILL);
      return;
    }
    stoppedBy = number;
    stoppedAt = Clock::now();
    // What comes from the terminal comes to the whole process group.
    if (info.ssi_code != SI_KERNEL)
      signalAll(number);
  }

  /// What the ranks do after this is no cause of anything.
  void endAll(int number) {
    for (Rank &rank : ranks) {
      rank.wasEnded |= rank.isRunning();
      rank.wasKilled |= rank.isRunning() && number == SIGKILL;
    }
    signalAll(number);
  }

  void signalAll(int number) {
    for (Rank &rank : ranks)
      if (rank.isRunning())
        rank.process.signal(number);
  }

  void collectEnded() {
    for (Rank &rank : ranks)
      if (rank.isRunning() && (rank.status = rank.process.pollStatus())) {
        passRestOfOutputOn(rank);
        if (!isFine(rank) && !rank.wasEnded)
          failed.push_back(&rank);
      }
  }

  /// Done, or ended as it was asked to.
  bool isFine(const Rank &rank) const {
    if (rank.killedBy() == 0 && rank.exitCode() == 0)
      return true;
    return stoppedBy &&
           (rank.killedBy() == stoppedBy || rank.exitCode() == 128 + stoppedBy);
  }

  void hurryTheRest() {
    if (failed.empty() || !isAnyRunning()) {
      deadline.reset();
      return;
    }
    const auto now = Clock::now();
    if (!deadline && lastSent == 0)
      deadline = now + options.timeToEnd;
    if (!deadline || now < *deadline)
      return;
    lastSent = lastSent == 0 ? SIGTERM : SIGKILL;
    endAll(lastSent);
    deadline.reset();
    if (lastSent == SIGTERM)
      deadline = now + options.timeToTerminate;
  }

  //===--- End ------------------------------------------------------------===//

  /// The lowest of the ranks that ended as `rank` did: of those with one failure
  /// it is the one that says so.
  const Rank &withSameEnd(const Rank &rank) const {
    const Rank *lowest = &rank;
    for (const Rank *other : failed)
      if (rank.killedBy() == 0 && other->killedBy() == 0 &&
          other->exitCode() == rank.exitCode() &&
          other->number < lowest->number)
        lowest = other;
    return *lowest;
  }

  int conclude() const {
    if (failed.empty()) {
      const bool areAllDone =
          std::all_of(ranks.begin(), ranks.end(), [](const Rank &rank) {
            return rank.killedBy() == 0 && rank.exitCode() == 0;
          });
      return areAllDone ? 0 : 128 + stoppedBy;
    }
    const auto cause =
        std::find_if(failed.begin(), failed.end(), [](const Rank *rank) {
          return rank->killedBy() != 0 ||
                 rank->exitCode() != static_cast<int>(ExitCode::PeerFailure);
        });
    // Where the others only miss a rank, that is the one which had to be killed.
    const auto stuck =
        std::find_if(ranks.begin(), ranks.end(),
                     [](const Rank &rank) { return rank.wasKilled; });
    if (cause == failed.end() && stuck != ranks.end()) {
      writeAll("error[FSDPQ-6055]: rank " + std::to_string(stuck->number) +
               " did not answer and was killed\n");
      return static_cast<int>(ExitCode::PeerFailure);
    }
    const Rank &first =
        withSameEnd(cause == failed.end() ? *failed.front() : **cause);
    std::string text =
        "error[FSDPQ-6055]: rank " + std::to_string(first.number);
    if (const int number = first.killedBy())
      text += " was killed by signal " + std::to_string(number) + " (" +
              strsignal(number) + ")";
    else
      text +=
          " failed first, with exit code " + std::to_string(first.exitCode());
    if (first.killedBy() == SIGKILL)
      text += "\n  hint: the system does this when memory runs out; fsdpq-run "
              "plan says what a run needs";
    writeAll(text + "\n");
    return first.exitCode();
  }

  const RankSetup &setup;
  const LaunchOptions &options;
  SignalQueue signals;
  std::vector<Rank> ranks;
  std::vector<const Rank *>
      failed;        ///< of their own, in the order of their ends
  int stoppedBy = 0; ///< the signal that came to the launcher
  Clock::time_point stoppedAt;
  int lastSent = 0; ///< to the ranks that did not end after a failure
  std::optional<Clock::time_point> deadline;
};

} // namespace

int launchRanks(const RankSetup &setup, const LaunchOptions &options) {
  return Launcher(setup, options).run();
}

} // namespace fsdpq::run
