// Launchers of shell scripts: each test runs one in a process of its own, whose
// exit code and output it looks at.

#include "tools/fsdpq-run/ranks/Launcher.h"
#include "test/unit/io/TestFiles.h"
#include "tools/fsdpq-run/ranks/ListeningSocket.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>

using namespace fsdpq::run;
using namespace std::chrono_literals;
using fsdpq::rt::test::errorId;
using fsdpq::rt::test::readFile;
using fsdpq::rt::test::ScratchFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

namespace {

/// Whether `condition` comes true in time.
template <typename Condition>
bool eventually(Condition condition) {
  for (const auto end = Clock::now() + 10s; Clock::now() < end;
       std::this_thread::sleep_for(5ms))
    if (condition())
      return true;
  return false;
}

RankSetup rankSetup(int64_t ranks) {
  RankSetup setup;
  setup.starts = setup.ranks = setup.localRanks = ranks;
  setup.token = "0123456789abcdef";
  return setup;
}

class LauncherTest : public testing::Test {
protected:
  /// Starts a launcher of `ranks` times the script; it runs in the folder.
  void start(int64_t ranks, const std::string &script) {
    start(rankSetup(ranks), script);
  }

  void start(const RankSetup &setup, const std::string &script) {
    startedAt = Clock::now();
    launcher = ::fork();
    ASSERT_GE(launcher, 0);
    if (launcher != 0)
      return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    ::alarm(20);
    const int out =
        ::open(folder.path("out").c_str(), O_WRONLY | O_CREAT, 0600);
    const int err =
        ::open(folder.path("err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    if (::chdir(folder.path().c_str()) != 0)
      ::_exit(99);
    try {
      ::_exit(launchRanks(setup, {.program = "/bin/sh",
                                  .arguments = {"sh", "-c", script, "sh"},
                                  .timeToEnd = 500ms,
                                  .timeToTerminate = 500ms}));
    } catch (const fsdpq::rt::Error &error) {
      const std::string text = std::string(error.what()) + "\n";
      ::_exit(::write(STDERR_FILENO, text.data(), text.size()) > 0 ? 98 : 99);
    }
  }

  /// The launcher's exit code, or minus the signal that killed it.
  int wait() {
    int status = 0;
    ::waitpid(launcher, &status, 0);
    took = Clock::now() - startedAt;
    launcher = -1;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  int run(int64_t ranks, const std::string &script) {
    start(ranks, script);
    return wait();
  }

  std::string output() const { return readFile(folder.path("out")); }
  std::string errors() const { return readFile(folder.path("err")); }

  bool hasFiles(std::initializer_list<const char *> names) const {
    for (const char *name : names)
      if (::access(folder.path(name).c_str(), F_OK) != 0)
        return false;
    return true;
  }

  /// Ranks write their process ids to pid.0, pid.1, ... A process that nobody
  /// has waited for yet is dead.
  bool isAnyAlive(int ranks) const {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string file = folder.path("pid." + std::to_string(rank));
      const std::string process = std::to_string(std::stoi(readFile(file)));
      const std::string status = readFile("/proc/" + process + "/stat");
      if (!status.empty() && status.find(") Z ") == std::string::npos)
        return true;
    }
    return false;
  }

  void TearDown() override {
    if (launcher > 0) {
      ::kill(-launcher, SIGKILL);
      ::waitpid(launcher, nullptr, 0);
    }
  }

  ScratchFolder folder;
  pid_t launcher = -1;
  Clock::time_point startedAt;
  Clock::duration took{};
};

/// Says that the rank is there, then sleeps until a signal.
const char sleeps[] = "echo $$ > pid.$RANK.new; mv pid.$RANK.new pid.$RANK; "
                      "exec sleep 30";

} // namespace

//===--- What a rank is told ------------------------------------------------//

TEST_F(LauncherTest, OfEqualEndsTheLowestRankIsNamed) {
  EXPECT_EQ(run(3, "[ $RANK = 0 ] && sleep 0.3; exit 2"), 2);
  EXPECT_THAT(errors(), testing::HasSubstr("rank 0 failed first, with exit code 2"));
}

TEST_F(LauncherTest, AStoppedRankIsNamedAndKilled) {
  EXPECT_EQ(run(3, "[ $RANK = 1 ] && kill -STOP $$; sleep 0.2; exit 5"), 5);
  EXPECT_THAT(errors(), testing::HasSubstr("rank 1 did not answer and was killed"));
  EXPECT_LT(took, 5s);
}

TEST_F(LauncherTest, VariablesOfARank) {
  ASSERT_EQ(::setenv("FSDPQ_LISTEN_FD", "77", 1), 0);
  ASSERT_EQ(::setenv("RANK", "9", 1), 0);
  ASSERT_EQ(::unsetenv("OMP_NUM_THREADS"), 0);
  EXPECT_EQ(run(3, "echo \"$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE "
                   "$MASTER_ADDR $FSDPQ_JOB_TOKEN ${FSDPQ_LISTEN_FD:+listens} "
                   "$OMP_NUM_THREADS\" > $RANK; env | grep -c ^RANK= >> $RANK"),
            0);
  ::unsetenv("FSDPQ_LISTEN_FD");
  ::unsetenv("RANK");
  const std::string threads =
      std::to_string(std::max(1u, std::thread::hardware_concurrency() / 3));
  EXPECT_EQ(readFile(folder.path("0")),
            "0 3 0 3 127.0.0.1 0123456789abcdef listens " + threads + "\n1\n");
  EXPECT_EQ(readFile(folder.path("2")),
            "2 3 2 3 127.0.0.1 0123456789abcdef  " + threads + "\n1\n");
  EXPECT_EQ(errors(), "");
}

TEST_F(LauncherTest, ThreadsThatTheUserChose) {
  ASSERT_EQ(::setenv("OMP_NUM_THREADS", "7", 1), 0);
  EXPECT_EQ(run(2, "echo $OMP_NUM_THREADS > $RANK"), 0);
  ::unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(readFile(folder.path("1")), "7\n");
}

TEST_F(LauncherTest, RanksOfAnotherHost) {
  RankSetup setup = rankSetup(2);
  setup.rank = 4;
  setup.ranks = 6;
  setup.masterAddress = "first.example";
  setup.masterPort = 4000;
  start(setup, "echo \"$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE "
               "$MASTER_ADDR $MASTER_PORT $FSDPQ_LISTEN_FD\" > $RANK; "
               "echo lost; echo said >&2");
  EXPECT_EQ(wait(), 0);
  EXPECT_EQ(readFile(folder.path("4")), "4 6 0 2 first.example 4000 \n");
  EXPECT_EQ(readFile(folder.path("5")), "5 6 1 2 first.example 4000 \n");
  EXPECT_EQ(output(), "");
  EXPECT_THAT(errors(), AllOf(HasSubstr("[rank 4] said\n"),
                              HasSubstr("[rank 5] said\n")));
}

/// The socket of rank 0 listens at MASTER_PORT, and others do not have it.
TEST_F(LauncherTest, ListeningSocketIsPassedOn) {
  EXPECT_EQ(run(2, "ls -l /proc/$$/fd | grep -c socket: > $RANK; "
                   "[ $RANK = 1 ] || grep -q \" 0100007F:$(printf %04X "
                   "$MASTER_PORT) 00000000:0000 0A \" /proc/net/tcp"),
            0);
  EXPECT_EQ(readFile(folder.path("0")), "1\n");
  EXPECT_EQ(readFile(folder.path("1")), "0\n");
}

TEST_F(LauncherTest, PortThatIsChosen) {
  ListeningSocket other(0);
  RankSetup setup = rankSetup(2);
  setup.masterPort = other.port();
  start(setup, "echo > started");
  EXPECT_EQ(wait(), 98);
  EXPECT_THAT(errors(), AllOf(HasSubstr("error[FSDPQ-6053]: port " +
                                        std::to_string(other.port())),
                              HasSubstr("--master_port")));
  EXPECT_FALSE(hasFiles({"started"}));
}

//===--- What is seen of it -------------------------------------------------//

TEST_F(LauncherTest, OutputOfRanks) {
  EXPECT_EQ(run(3, "echo result $RANK; echo note $RANK >&2; "
                   "printf 'no end' >&2"),
            0);
  EXPECT_EQ(output(), "result 0\n");
  // Their order is open, each line is whole.
  EXPECT_THAT(
      errors(),
      AllOf(HasSubstr("[rank 1] note 1\n"), HasSubstr("[rank 1] no end\n"),
            HasSubstr("[rank 2] note 2\n"), HasSubstr("[rank 2] no end\n"),
            HasSubstr("note 0\n"), Not(HasSubstr("[rank 0]"))));
}

TEST_F(LauncherTest, MuchOutputArrivesWhole) {
  EXPECT_EQ(run(2, "[ $RANK = 0 ] || seq 100000 >&2"), 0);
  std::string expected;
  for (int i = 1; i <= 100000; ++i)
    expected += "[rank 1] " + std::to_string(i) + "\n";
  EXPECT_TRUE(errors() == expected) << errors().size();
}

/// A child of a rank may outlive it and hold its streams.
TEST_F(LauncherTest, StreamsThatStayOpen) {
  EXPECT_EQ(run(2, "sleep 8 & echo $! > pid.$RANK; echo said >&2"), 0);
  EXPECT_LT(took, 4s);
  EXPECT_THAT(errors(), HasSubstr("[rank 1] said\n"));
  for (const char *file : {"pid.0", "pid.1"})
    ::kill(std::stoi(readFile(folder.path(file))), SIGKILL);
}

//===--- How it ends --------------------------------------------------------//

TEST_F(LauncherTest, FirstFailureIsTheCause) {
  EXPECT_EQ(run(3,
                "case $RANK in 1) sleep 0.1; exit 2;; *) sleep 0.3; exit 5;; "
                "esac"),
            2);
  EXPECT_THAT(errors(), HasSubstr("rank 1 failed first, with exit code 2\n"));
  EXPECT_LT(took, 3s);
}

/// Peers may end before the process that they could not wait for.
TEST_F(LauncherTest, PeerFailureIsAConsequence) {
  EXPECT_EQ(run(2, "case $RANK in 0) exit 5;; *) sleep 0.2; exit 4;; esac"), 4);
  EXPECT_THAT(errors(), HasSubstr("rank 1 failed first, with exit code 4"));
}

TEST_F(LauncherTest, PeerFailureOfAll) {
  EXPECT_EQ(run(2, "exit 5"), 5);
  EXPECT_THAT(errors(), HasSubstr("failed first, with exit code 5"));
}

TEST_F(LauncherTest, KilledRank) {
  EXPECT_EQ(run(3, "case $RANK in 2) kill -9 $$;; *) sleep 0.2; exit 5;; esac"),
            5);
  EXPECT_THAT(errors(),
              AllOf(StartsWith("error[FSDPQ-6055]: rank 2 was killed by signal "
                               "9 (Killed)\n"),
                    HasSubstr("memory")));
}

TEST_F(LauncherTest, CrashedRank) {
  EXPECT_EQ(run(2, "[ $RANK = 0 ] && exit 5; ulimit -c 0; kill -SEGV $$"), 5);
  EXPECT_THAT(errors(), HasSubstr("rank 1 was killed by signal 11"));
}

TEST_F(LauncherTest, OthersAreEndedInTheEnd) {
  // Rank 1 ends at SIGTERM, rank 2 at nothing but SIGKILL.
  start(3, "echo $$ > pid.$RANK; case $RANK in "
           "0) while ! [ -e ready.1 -a -e ready.2 ]; do sleep 0.01; done; "
           "   exit 7;; "
           "1) trap 'echo > asked.1; exit 3' TERM;; "
           "2) trap 'echo > asked.2' TERM;; esac; "
           "echo > ready.$RANK; while :; do sleep 0.02; done");
  EXPECT_EQ(wait(), 7);
  EXPECT_GE(took, 1s);
  EXPECT_LT(took, 5s);
  EXPECT_TRUE(hasFiles({"asked.1", "asked.2"}));
  EXPECT_THAT(errors(), HasSubstr("rank 0 failed first, with exit code 7"));
  EXPECT_FALSE(isAnyAlive(3));
}

TEST_F(LauncherTest, ProgramThatIsNotThere) {
  RankSetup setup = rankSetup(2);
  launcher = ::fork();
  ASSERT_GE(launcher, 0);
  if (launcher == 0) {
    const int err =
        ::open(folder.path("err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(err, STDERR_FILENO);
    ::_exit(launchRanks(
        setup, {.program = folder.path("none"), .arguments = {"none"}}));
  }
  EXPECT_EQ(wait(), 127);
  EXPECT_THAT(errors(),
              AllOf(HasSubstr("FSDPQ-6054"), HasSubstr("No such file")));
}

//===--- Signals ------------------------------------------------------------//

TEST_F(LauncherTest, SignalsGoOn) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const std::string name = std::to_string(number);
    start(2, "trap 'echo > stopped." + name + ".$RANK; exit " +
                 std::to_string(128 + number) + "' " + name +
                 "; echo > ready." + name +
                 ".$RANK; "
                 "while :; do sleep 0.02; done");
    ASSERT_TRUE(eventually([&] {
      return hasFiles(
          {("ready." + name + ".0").c_str(), ("ready." + name + ".1").c_str()});
    }));
    ::kill(launcher, number);
    EXPECT_EQ(wait(), 128 + number);
    EXPECT_TRUE(hasFiles({("stopped." + name + ".0").c_str(),
                          ("stopped." + name + ".1").c_str()}));
    EXPECT_EQ(errors(), "");
  }
}

/// A rank that has not yet begun to listen for signals is killed by them.
TEST_F(LauncherTest, SignalKillsRanksThatDoNotListen) {
  start(2, sleeps);
  ASSERT_TRUE(eventually([&] { return hasFiles({"pid.0", "pid.1"}); }));
  ::kill(launcher, SIGTERM);
  EXPECT_EQ(wait(), 143);
  EXPECT_EQ(errors(), "");
  EXPECT_FALSE(isAnyAlive(2));
}

/// Saving may take its time: nobody is hurried after a signal.
TEST_F(LauncherTest, RanksEndInGoodOrder) {
  start(2,
        "trap 'sleep $RANK; sleep $RANK; echo > saved.$RANK; exit 143' TERM; "
        "echo > ready.$RANK; while :; do sleep 0.02; done");
  ASSERT_TRUE(eventually([&] { return hasFiles({"ready.0", "ready.1"}); }));
  ::kill(launcher, SIGTERM);
  EXPECT_EQ(wait(), 143);
  EXPECT_TRUE(hasFiles({"saved.0", "saved.1"}));
}

TEST_F(LauncherTest, DoneBeforeTheSignalCounts) {
  start(2, "trap 'exit 0' TERM; echo > ready.$RANK; "
           "while :; do sleep 0.02; done");
  ASSERT_TRUE(eventually([&] { return hasFiles({"ready.0", "ready.1"}); }));
  ::kill(launcher, SIGTERM);
  EXPECT_EQ(wait(), 0);
}

TEST_F(LauncherTest, FailureAfterASignal) {
  start(2, "trap '[ $RANK = 0 ] && exit 143; exit 4' TERM; "
           "echo > ready.$RANK; while :; do sleep 0.02; done");
  ASSERT_TRUE(eventually([&] { return hasFiles({"ready.0", "ready.1"}); }));
  ::kill(launcher, SIGTERM);
  EXPECT_EQ(wait(), 4);
  EXPECT_THAT(errors(), HasSubstr("rank 1 failed first, with exit code 4"));
}

TEST_F(LauncherTest, SignalsAtOnceAreOne) {
  start(2, "trap 'echo x >> got.$RANK' TERM; echo > ready.$RANK; "
           "until [ -e end ]; do sleep 0.02; done; exit 143");
  ASSERT_TRUE(eventually([&] { return hasFiles({"ready.0", "ready.1"}); }));
  ::kill(launcher, SIGTERM);
  ASSERT_TRUE(eventually([&] { return hasFiles({"got.0", "got.1"}); }));
  ::kill(launcher, SIGTERM);
  ::kill(launcher, SIGHUP);
  std::this_thread::sleep_for(200ms);
  folder.write("end", "");
  EXPECT_EQ(wait(), 143);
  EXPECT_EQ(readFile(folder.path("got.0")), "x\n");
  EXPECT_EQ(readFile(folder.path("got.1")), "x\n");
}

TEST_F(LauncherTest, SecondSignalKills) {
  start(2, "echo $$ > pid.$RANK; trap 'echo > got.$RANK' TERM; "
           "echo > ready.$RANK; while :; do sleep 0.02; done");
  ASSERT_TRUE(eventually([&] { return hasFiles({"ready.0", "ready.1"}); }));
  ::kill(launcher, SIGTERM);
  ASSERT_TRUE(eventually([&] { return hasFiles({"got.0", "got.1"}); }));
  std::this_thread::sleep_for(1100ms);
  EXPECT_TRUE(isAnyAlive(2));
  ::kill(launcher, SIGTERM);
  EXPECT_EQ(wait(), 143);
  EXPECT_FALSE(isAnyAlive(2));
}

/// As nohup asks for.
TEST_F(LauncherTest, AnIgnoredHangUpStaysIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  start(2, "echo > ready.$RANK; until [ -e end ]; do sleep 0.02; done");
  std::signal(SIGHUP, SIG_DFL);
  ASSERT_TRUE(eventually([&] { return hasFiles({"ready.0", "ready.1"}); }));
  ::kill(launcher, SIGHUP);
  std::this_thread::sleep_for(100ms);
  folder.write("end", "");
  EXPECT_EQ(wait(), 0);
}

/// However the launcher ends.
TEST_F(LauncherTest, NobodyIsOrphaned) {
  start(3, sleeps);
  ASSERT_TRUE(eventually([&] {
    return hasFiles({"pid.0", "pid.1", "pid.2"});
  }));
  EXPECT_TRUE(isAnyAlive(3));
  ::kill(launcher, SIGKILL);
  EXPECT_EQ(wait(), -SIGKILL);
  EXPECT_TRUE(eventually([&] { return !isAnyAlive(3); }));
}

/// The launcher of a job may ignore the ends of its children.
TEST_F(LauncherTest, IgnoredChildren) {
  std::signal(SIGCHLD, SIG_IGN);
  start(2, "exit $RANK");
  std::signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(wait(), 1);
}
