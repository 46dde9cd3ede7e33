#include "tools/fsdpq-run/ranks/RankProcess.h"

#include "runtime/support/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

namespace {

std::vector<char *> pointersTo(const std::vector<std::string> &texts) {
  std::vector<char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(const_cast<char *>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// The child's side between fork and exec, where memory cannot be asked for.
class ChildStart {
public:
  explicit ChildStart(const RankProcessOptions &options)
      : options(options), arguments(pointersTo(options.arguments)),
        environment(pointersTo(options.environment)) {}

  [[noreturn]] void run(pid_t parent, int output) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) // it ended before this was asked for
      ::_exit(127);
    if (!options.isFirst) {
      const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0 ||
          ::dup2(nothing, STDOUT_FILENO) < 0 ||
          ::dup2(output, STDERR_FILENO) < 0)
        fail("redirecting its output");
    }
    if (options.inherited >= 0 && ::fcntl(options.inherited, F_SETFD, 0) != 0)
      fail("passing a socket on");
    ::signal(SIGPIPE, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &options.signalMask, nullptr);
    ::execve(options.program.c_str(), arguments.data(), environment.data());
    fail(options.program.c_str());
  }

private:
  [[noreturn]] static void fail(const char *what) {
    const char *reason = ::strerrordesc_np(errno);
    for (const char *text :
         {"error[FSDPQ-6054]: a rank cannot be started: ", what, ": ",
          reason ? reason : "unknown error", "\n"})
      if (::write(STDERR_FILENO, text, std::strlen(text)) < 0)
        break;
    ::_exit(127);
  }

  const RankProcessOptions &options;
  std::vector<char *> arguments, environment;
};

Error cannotStart(const std::string &what) {
  return Error(6054, ExitCode::RunFailure,
               "a rank cannot be started: " + what + ": " +
                   std::strerror(errno),
               "", "start fewer with --nproc_per_node");
}

} // namespace

RankProcess::RankProcess(const RankProcessOptions &options) {
  int ends[2] = {-1, -1};
  if (!options.isFirst && ::pipe2(ends, O_CLOEXEC) != 0)
    throw cannotStart("a pipe for its output");
  const ChildStart child(options);
  const pid_t parent = ::getpid();
  process = ::fork();
  if (process == 0)
    child.run(parent, ends[1]);
  const int code = errno;
  if (!options.isFirst) {
    ::close(ends[1]);
    output_ = ends[0];
    ::fcntl(output_, F_SETFL, O_NONBLOCK);
  }
  if (process < 0) {
    closeOutput();
    errno = code;
    throw cannotStart("a process");
  }
}

RankProcess::~RankProcess() {
  if (process > 0) {
    ::kill(process, SIGKILL);
    while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  closeOutput();
}

RankProcess::RankProcess(RankProcess &&other) noexcept
    : process(std::exchange(other.process, -1)),
      output_(std::exchange(other.output_, -1)) {}

std::optional<int> RankProcess::pollStatus() {
  int status;
  if (::waitpid(process, &status, WNOHANG) != process)
    return std::nullopt;
  process = -1;
  return status;
}

void RankProcess::signal(int number) const {
  if (process > 0)
    ::kill(process, number);
}

std::string RankProcess::readOutput() {
  char buffer[size_t(64) << 10]; // as much as a pipe holds
  ssize_t bytes;
  do
    bytes = ::read(output_, buffer, sizeof buffer);
  while (bytes < 0 && errno == EINTR);
  if (bytes > 0)
    return {buffer, static_cast<size_t>(bytes)};
  if (bytes == 0 || errno != EAGAIN)
    closeOutput();
  return "";
}

void RankProcess::closeOutput() {
  if (output_ >= 0)
    ::close(std::exchange(output_, -1));
}

} // namespace fsdpq::run
