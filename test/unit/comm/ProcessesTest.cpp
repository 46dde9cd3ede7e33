#include "test/unit/comm/RankProcesses.h"
#include "test/unit/comm/Ranks.h"

#include <arpa/inet.h>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace fsdpq::test;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

namespace {

/// Ends the whole test when something hangs.
class Processes : public testing::Test {
protected:
  void SetUp() override { ::alarm(30); }
  void TearDown() override { ::alarm(0); }
};

/// A connection of somebody who is no rank, once somebody listens at the port.
class Stranger {
public:
  Stranger(uint16_t port, const std::string &says)
      : descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    int code = -1;
    for (int i = 0; i < 500 && code != 0; ++i) {
      code = ::connect(descriptor, reinterpret_cast<sockaddr *>(&address),
                       sizeof address);
      if (code != 0)
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(code, 0);
    EXPECT_EQ(::send(descriptor, says.data(), says.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(says.size()));
  }
  ~Stranger() { ::close(descriptor); }
  Stranger(const Stranger &) = delete;
  Stranger &operator=(const Stranger &) = delete;

  /// Says no more, but listens.
  void finish() { ::shutdown(descriptor, SHUT_WR); }
  /// All that it is told.
  std::string answer() {
    std::string text;
    char bytes[512];
    ssize_t got;
    while ((got = ::recv(descriptor, bytes, sizeof bytes, 0)) > 0)
      text.append(bytes, static_cast<size_t>(got));
    return text;
  }

private:
  int descriptor;
};

/// The start of a greeting whose body has `bytes`.
std::string header(uint64_t bytes) {
  std::string text = "FSPQ";
  text += std::string("\x01\0\0\0", 4);
  text.append(reinterpret_cast<const char *>(&bytes), sizeof bytes);
  return text;
}

/// Ends one of four ranks with `number`; the others must say `expected` within
/// `limit`.
void endOne(size_t which, int number, const std::string &expected,
            Clock::duration limit, const std::vector<std::string> &options) {
  std::vector<RankProcess> ranks = startRanks(4, options);
  const auto start = Clock::now();
  ranks[which].signal(number);
  for (size_t rank = 0; rank < 4; ++rank) {
    if (rank == which)
      continue;
    EXPECT_THAT(ranks[rank].line(),
                AllOf(StartsWith(expected),
                      HasSubstr("--> rank " + std::to_string(rank) +
                                ", all_gather number "),
                      HasSubstr(" of 8 bytes on the channel 'gather', at "
                                "model.mlir:3:7")));
  }
  EXPECT_LT(Clock::now() - start, limit);
}

} // namespace

//===--- Ranks that end -----------------------------------------------------//

TEST_F(Processes, EndInOrder) {
  const uint16_t port = freePort();
  std::vector<RankProcess> ranks;
  for (int64_t rank = 0; rank < 3; ++rank)
    ranks.emplace_back(rank, 3, port, std::vector<std::string>{"rounds=20"});
  for (RankProcess &rank : ranks)
    EXPECT_EQ(rank.lastLine(), "done");
}

TEST_F(Processes, AKilledRankIsNamed) {
  endOne(2, SIGKILL,
         "error 7001 error[FSDPQ-7001]: rank 2 is gone: its connection ended "
         "without a goodbye",
         4s, {});
}

TEST_F(Processes, TheEndOfRankZeroIsNamed) {
  endOne(0, SIGKILL, "error 7001 error[FSDPQ-7001]: rank 0 is gone: ", 4s, {});
}

TEST_F(Processes, AStoppedRankIsNamed) {
  endOne(2, SIGSTOP,
         "error 7002 error[FSDPQ-7002]: rank 2 does not answer: nothing came "
         "from it for 1 s",
         6s, {"silence=1000"});
}

TEST_F(Processes, StoppedRankZeroIsNamed) {
  endOne(0, SIGSTOP,
         "error 7002 error[FSDPQ-7002]: rank 0 does not answer: nothing came "
         "from it for 1 s",
         8s, {"silence=1000"});
}

TEST_F(Processes, WhoGoesOnAfterAllHaveEndedIsTold) {
  std::vector<RankProcess> ranks = startRanks(2, {"silence=1000"});
  ranks[1].signal(SIGSTOP);
  EXPECT_THAT(ranks[0].line(), StartsWith("error 7002 "));
  ranks[1].signal(SIGCONT);
  EXPECT_THAT(ranks[1].line(), StartsWith("error 700"));
}

TEST_F(Processes, WhoComputesForLongIsThere) {
  const uint16_t port = freePort();
  std::vector<RankProcess> ranks;
  for (int64_t rank = 0; rank < 3; ++rank)
    ranks.emplace_back(
        rank, 3, port,
        std::vector<std::string>{"silence=1000", "rounds=5",
                                 rank == 1 ? "busy=2500" : "busy=0"});
  for (RankProcess &rank : ranks)
    EXPECT_EQ(rank.lastLine(), "done");
}

//===--- Ranks that come ----------------------------------------------------//

TEST_F(Processes, StrangersDisturbNobody) {
  const uint16_t port = freePort();
  const std::vector<std::string> options = {"rounds=3", "token=secret"};
  RankProcess zero(0, 2, port, options);
  Stranger silent(port, "");
  Stranger slow(port, header(40).substr(0, 9));
  Stranger garbage(port, "GET / HTTP/1.1\r\n\r\n");
  Stranger tooLong(port, header(uint64_t(1) << 40));
  Stranger noGreeting(port, header(8) + std::string(8, '\xff'));
  Stranger truncated(port, header(40) + "abc");
  truncated.finish();
  EXPECT_THAT(garbage.answer(), HasSubstr("is no greeting of a rank"));
  EXPECT_THAT(tooLong.answer(), HasSubstr("is no greeting of a rank"));
  EXPECT_THAT(noGreeting.answer(), HasSubstr("is no greeting of a rank"));
  EXPECT_THAT(truncated.answer(),
              HasSubstr("the connection ended within the greeting"));
  const auto start = Clock::now();
  EXPECT_THAT(silent.answer(), HasSubstr("no greeting came within 2 s"));
  EXPECT_THAT(slow.answer(), HasSubstr("no greeting came within 2 s"));
  EXPECT_LT(Clock::now() - start, 4s);
  RankProcess one(1, 2, port, options);
  EXPECT_EQ(one.lastLine(), "done");
  EXPECT_EQ(zero.lastLine(), "done");
}

TEST_F(Processes, NobodyWaitsForAStranger) {
  const uint16_t port = freePort();
  RankProcess zero(0, 2, port, {"rounds=3"});
  Stranger silent(port, "");
  const auto start = Clock::now();
  RankProcess one(1, 2, port, {"rounds=3"});
  EXPECT_EQ(one.lastLine(), "done");
  EXPECT_EQ(zero.lastLine(), "done");
  EXPECT_LT(Clock::now() - start, 1800ms);
}

TEST_F(Processes, AnotherTokenIsRefused) {
  const uint16_t port = freePort();
  RankProcess zero(0, 2, port, {"rounds=3", "token=secret"});
  for (const char *token : {"token=Secret", "token=secretsecret", "token="}) {
    RankProcess other(1, 2, port, {token});
    EXPECT_THAT(other.line(),
                AllOf(StartsWith("error 7014 "), HasSubstr("refused rank 1"),
                      HasSubstr("the token is not that of the run")));
  }
  RankProcess one(1, 2, port, {"rounds=3", "token=secret"});
  EXPECT_EQ(one.lastLine(), "done");
  EXPECT_EQ(zero.lastLine(), "done");
}

TEST_F(Processes, TwoRunsOnOnePort) {
  const uint16_t port = freePort();
  RankProcess zero(0, 2, port, {"rounds=3", "token=first"});
  { Stranger waits(port, ""); } // until it listens
  RankProcess otherZero(0, 2, port, {"token=second"});
  EXPECT_THAT(otherZero.line(),
              AllOf(StartsWith("error 7010 "),
                    HasSubstr("127.0.0.1:" + std::to_string(port)),
                    HasSubstr("in use")));
  RankProcess otherOne(1, 2, port, {"token=second"});
  EXPECT_THAT(otherOne.line(), StartsWith("error 7014 "));
  RankProcess one(1, 2, port, {"rounds=3", "token=first"});
  EXPECT_EQ(one.lastLine(), "done");
  EXPECT_EQ(zero.lastLine(), "done");
}

TEST_F(Processes, AnotherPlanEndsAll) {
  const uint16_t port = freePort();
  RankProcess zero(0, 3, port, {"plan=abc"});
  RankProcess two(2, 3, port, {"plan=abc"});
  std::this_thread::sleep_for(300ms); // one comes last, most likely
  RankProcess one(1, 3, port, {"plan=xyz"});
  for (RankProcess *rank : {&zero, &one, &two})
    EXPECT_THAT(rank->line(), AllOf(StartsWith("error 7013 "),
                                    HasSubstr("rank 1 has another plan hash "
                                              "than rank 0: 'xyz' and 'abc'"),
                                    testing::Not(HasSubstr("version"))));
}

/// A rank that comes after the run has failed is told so, and does not look for
/// rank 0 until its time is over.
TEST_F(Processes, WhoComesAfterTheFailureIsToldToo) {
  const uint16_t port = freePort();
  RankProcess zero(0, 3, port, {"plan=abc"});
  RankProcess two(2, 3, port, {"plan=xyz"});
  EXPECT_THAT(two.line(), StartsWith("error 7013 "));
  const auto start = Clock::now();
  RankProcess one(1, 3, port, {"plan=abc"});
  EXPECT_THAT(one.line(), AllOf(StartsWith("error 7013 "),
                                HasSubstr("rank 2 has another plan hash")));
  EXPECT_THAT(zero.line(), StartsWith("error 7013 "));
  EXPECT_LT(Clock::now() - start, 4s);
}

TEST_F(Processes, AnotherWorldSizeEndsAll) {
  const uint16_t port = freePort();
  RankProcess zero(0, 2, port);
  RankProcess one(1, 3, port);
  for (RankProcess *rank : {&zero, &one})
    EXPECT_THAT(
        rank->line(),
        AllOf(StartsWith("error 7012 "),
              HasSubstr("rank 1 was started for 3 ranks, rank 0 for 2")));
}

TEST_F(Processes, ARankIsThereOnce) {
  const uint16_t port = freePort();
  RankProcess zero(0, 3, port, {"rounds=3"});
  std::optional<RankProcess> first(std::in_place, 1, 3, port,
                                   std::vector<std::string>{"rounds=3"});
  RankProcess second(1, 3, port, {"rounds=3"});
  // Which of them comes first is open.
  const std::string firstEnd = first->line(1500ms);
  const std::string refused = firstEnd == "late" ? second.line() : firstEnd;
  EXPECT_THAT(refused, AllOf(StartsWith("error 7015 "),
                             HasSubstr("rank 1 is there already")));
  RankProcess two(2, 3, port, {"rounds=3"});
  EXPECT_EQ((firstEnd == "late" ? *first : second).lastLine(), "done");
  EXPECT_EQ(two.lastLine(), "done");
  EXPECT_EQ(zero.lastLine(), "done");
}

TEST_F(Processes, WhoDoesNotComeAtAllIsNamed) {
  const uint16_t port = freePort();
  RankProcess zero(0, 4, port, {"connect=1000"});
  RankProcess two(2, 4, port);
  for (RankProcess *rank : {&zero, &two})
    EXPECT_THAT(
        rank->line(),
        AllOf(StartsWith("error 7011 "),
              HasSubstr("ranks 1, 3 did not come to rank 0 at 127.0.0.1:" +
                        std::to_string(port) + " within 1 s")));
  RankProcess alone(1, 2, port, {"connect=600"});
  EXPECT_THAT(alone.line(),
              AllOf(StartsWith("error 7011 "),
                    HasSubstr("rank 0 was not reached at 127.0.0.1:" +
                              std::to_string(port) + " within 600 ms")));
}

TEST_F(Processes, WhoEndsBeforeAllHaveComeEndsAll) {
  const uint16_t port = freePort();
  RankProcess zero(0, 3, port);
  RankProcess one(1, 3, port);
  std::this_thread::sleep_for(700ms);
  one.signal(SIGKILL);
  EXPECT_THAT(zero.line(), StartsWith("error 7001 error[FSDPQ-7001]: rank 1 is "
                                      "gone: it ended before all ranks had"));
  const uint16_t another = freePort();
  RankProcess otherZero(0, 3, another);
  RankProcess otherOne(1, 3, another);
  std::this_thread::sleep_for(700ms);
  otherZero.signal(SIGKILL);
  EXPECT_THAT(otherOne.line(),
              StartsWith("error 7001 error[FSDPQ-7001]: rank 0 "
                         "is gone: it ended before all ranks"));
}

TEST_F(Processes, OthersOfTheNetworkNeedAToken) {
  const uint16_t port = freePort();
  for (int64_t rank : {0, 1}) {
    RankProcess open(rank, 2, port, {"address=0.0.0.0"});
    EXPECT_THAT(open.line(),
                AllOf(StartsWith("error 7016 "), HasSubstr("0.0.0.0:"),
                      HasSubstr("job token"), HasSubstr("FSDPQ_JOB_TOKEN")));
  }
}
