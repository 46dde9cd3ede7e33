#include "runtime/train/StopSignals.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using fsdpq::rt::StopSignals;

/// The status of a child that runs `body` and ends with what that returns.
template <typename Body>
static int statusOf(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// To the process, of which another thread takes it.
static void send(int number) {
  ::kill(::getpid(), number);
  ::usleep(100000);
}

TEST(StopSignals, TheFirstIsNoted) {
  const int status = statusOf([] {
    StopSignals signals;
    if (signals.received() != 0)
      return 1;
    send(SIGTERM);
    send(SIGTERM); // passed on by somebody else, too
    send(SIGINT);
    return signals.received() == SIGTERM ? 42 : 2;
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(StopSignals, ALaterOneEndsTheProcess) {
  const int status = statusOf([] {
    StopSignals signals;
    send(SIGTERM);
    ::usleep(1100000);
    send(SIGINT);
    return 1;
  });
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

// nohup starts a run so. Shells start those in the background with SIGINT
// ignored, where it is still a way to stop one.
TEST(StopSignals, AnIgnoredHangUpStaysIgnored) {
  const int status = statusOf([] {
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGINT, SIG_IGN);
    StopSignals signals;
    send(SIGHUP);
    if (signals.received() != 0)
      return 1;
    send(SIGINT);
    return signals.received() == SIGINT ? 42 : 2;
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(StopSignals, GivesThemBack) {
  const int status = statusOf([] {
    { StopSignals signals; }
    ::raise(SIGTERM);
    return 1;
  });
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}
