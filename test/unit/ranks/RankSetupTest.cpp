#include "tools/fsdpq-run/ranks/RankSetup.h"
#include "test/unit/io/TestFiles.h"
#include "tools/fsdpq-run/ranks/ListeningSocket.h"

#include <gtest/gtest.h>
#include <map>

using namespace fsdpq::run;
using fsdpq::rt::test::errorId;

using Variables = std::map<std::string, std::string>;

static RankSetup setupOf(const Variables &variables,
                         const RankOptions &options = {}) {
  return readRankSetup(options, [&](const std::string &name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt
                                    : std::optional(found->second);
  });
}

/// `base` with some variables changed, or removed (value "").
static Variables changed(Variables base, const Variables &changes) {
  for (const auto &[name, value] : changes)
    if (value.empty())
      base.erase(name);
    else
      base[name] = value;
  return base;
}

static const Variables torchrun = {{"RANK", "5"},
                                   {"WORLD_SIZE", "8"},
                                   {"LOCAL_RANK", "1"},
                                   {"LOCAL_WORLD_SIZE", "4"},
                                   {"MASTER_ADDR", "first.example"},
                                   {"MASTER_PORT", "29400"},
                                   {"FSDPQ_JOB_TOKEN", "0123456789abcdef"}};

static const Variables slurm = {{"SLURM_JOB_ID", "40007"},
                                {"SLURM_STEP_ID", "3"},
                                {"SLURM_STEP_NUM_TASKS", "5"},
                                {"SLURM_STEP_NUM_NODES", "3"},
                                {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                                {"SLURM_STEP_NODELIST", "n[07-09]"},
                                {"SLURM_PROCID", "3"},
                                {"SLURM_NODEID", "1"},
                                {"SLURM_LOCALID", "1"},
                                {"FSDPQ_JOB_TOKEN", "0123456789abcdef"}};

static const Variables slurmHosts =
    changed(slurm, {{"SLURM_STEP_NUM_TASKS", "3"},
                    {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
                    {"SLURM_PROCID", "1"},
                    {"SLURM_LOCALID", "0"}});

//===--- One process --------------------------------------------------------//

TEST(RankSetup, NothingSaid) {
  for (const Variables &variables :
       {Variables{}, Variables{{"WORLD_SIZE", "1"}},
        Variables{{"WORLD_SIZE", "1"}, {"RANK", "0"}},
        Variables{{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}},
        // A batch script is no step, however many tasks its job may start.
        Variables{{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}}) {
    const RankSetup setup = setupOf(variables);
    EXPECT_EQ(setup.ranks, 1);
    EXPECT_EQ(setup.rank, 0);
    EXPECT_EQ(setup.localRanks, 1);
    EXPECT_EQ(setup.starts, 0);
    EXPECT_EQ(setup.token, "");
  }
}

//===--- Our launcher -------------------------------------------------------//

TEST(RankSetup, RanksOfOneHostMeetAtItsLoopbackAddress) {
  EXPECT_EQ(setupOf({}, {.ranksPerHost = 2, .masterAddress = "127.0.0.1"})
                .masterAddress,
            "127.0.0.1");
  EXPECT_EQ(errorId(
                [] {
                  setupOf({}, {.ranksPerHost = 2,
                               .masterAddress = "first.example"});
                },
                "meet at 127.0.0.1"),
            6050);
}

TEST(RankSetup, StartsRanks) {
  const RankSetup setup = setupOf({}, {.ranksPerHost = 4});
  EXPECT_EQ(setup.starts, 4);
  EXPECT_EQ(setup.rank, 0);
  EXPECT_EQ(setup.ranks, 4);
  EXPECT_EQ(setup.localRanks, 4);
  EXPECT_EQ(setup.masterAddress, "127.0.0.1");
  EXPECT_EQ(setup.masterPort, 0);
  EXPECT_TRUE(setup.isOnOneHost());
  EXPECT_EQ(setup.token.size(), 32u);
  EXPECT_NE(setup.token, setupOf({}, {.ranksPerHost = 4}).token);

  // The reference starts as many as --world_size says.
  EXPECT_EQ(setupOf({}, {.ranks = 3}).starts, 3);
  EXPECT_EQ(setupOf({}, {.ranksPerHost = 3, .ranks = 3}).starts, 3);
  EXPECT_EQ(setupOf({}, {.ranksPerHost = 1}).starts, 0);
  EXPECT_EQ(setupOf({}, {.ranksPerHost = 2, .masterPort = 4000}).masterPort,
            4000);
  EXPECT_EQ(
      setupOf({{"FSDPQ_JOB_TOKEN", "0123456789abcdef"}}, {.ranksPerHost = 2})
          .token,
      "0123456789abcdef");
  EXPECT_EQ(errorId([] { setupOf({}, {.ranksPerHost = 2, .ranks = 4}); },
                    "--world_size is 4, but the run has 2"),
            6050);
  EXPECT_EQ(errorId([] { setupOf({}, {.ranksPerHost = 1, .ranks = 4}); }),
            6050);
}

/// The reference starts one for each GPU if nobody says how many.
TEST(RankSetup, StartsAsManyAsThereAreGpus) {
  const auto four = [] { return int64_t(4); };
  EXPECT_EQ(setupOf({}, {.ranksByDefault = four}).starts, 4);
  EXPECT_EQ(setupOf({}, {.ranksByDefault = four}).ranks, 4);
  EXPECT_EQ(setupOf({{"WORLD_SIZE", "1"}}, {.ranksByDefault = four}).starts, 4);
  EXPECT_EQ(setupOf({}, {.ranksByDefault = [] { return int64_t(1); }}).starts, 0);

  // Whoever says, says how many; then nobody looks for GPUs.
  const auto never = []() -> int64_t { throw std::runtime_error("asked"); };
  EXPECT_EQ(setupOf({}, {.ranksPerHost = 1, .ranksByDefault = never}).starts, 0);
  EXPECT_EQ(setupOf({}, {.ranks = 2, .ranksByDefault = never}).starts, 2);
  EXPECT_EQ(setupOf(torchrun, {.ranksByDefault = never}).rank, 5);
  EXPECT_EQ(setupOf(slurm, {.ranksByDefault = never}).rank, 3);
}

/// What the launcher says to a rank, which has the launcher's command line.
TEST(RankSetup, StartedByIt) {
  const Variables launched = {{"RANK", "1"},
                              {"WORLD_SIZE", "2"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "127.0.0.1"},
                              {"MASTER_PORT", "4321"},
                              {"FSDPQ_JOB_TOKEN", "0123456789abcdef"}};
  const RankSetup setup = setupOf(
      launched,
      {.ranksPerHost = 2, .masterAddress = "localhost", .masterPort = 0});
  EXPECT_EQ(setup.starts, 0);
  EXPECT_EQ(setup.rank, 1);
  EXPECT_EQ(setup.localRank, 1);
  EXPECT_EQ(setup.masterPort, 4321);
  EXPECT_EQ(setup.masterAddress, "127.0.0.1");
  EXPECT_EQ(setup.listenDescriptor, -1);

  ListeningSocket socket(0);
  const Variables first = changed(
      launched, {{"RANK", "0"},
                 {"LOCAL_RANK", "0"},
                 {"FSDPQ_LISTEN_FD", std::to_string(socket.descriptor())}});
  EXPECT_EQ(setupOf(first).listenDescriptor, socket.descriptor());
  for (const char *other : {"0", "-1", "x", "99999", "1048577"})
    EXPECT_EQ(errorId(
                  [&] {
                    setupOf(changed(first, {{"FSDPQ_LISTEN_FD", other}}));
                  },
                  "FSDPQ_LISTEN_FD"),
              6051)
        << other;
}

//===--- torchrun -----------------------------------------------------------//

TEST(RankSetup, Torchrun) {
  const RankSetup setup = setupOf(torchrun);
  EXPECT_EQ(setup.starts, 0);
  EXPECT_EQ(setup.rank, 5);
  EXPECT_EQ(setup.ranks, 8);
  EXPECT_EQ(setup.localRank, 1);
  EXPECT_EQ(setup.localRanks, 4);
  EXPECT_FALSE(setup.isOnOneHost());
  EXPECT_EQ(setup.masterAddress, "first.example");
  EXPECT_EQ(setup.masterPort, 29400);
  EXPECT_EQ(setup.token, "0123456789abcdef");
  // A job of SLURM may start it.
  EXPECT_EQ(setupOf(changed(slurm, torchrun)).rank, 5);
}

TEST(RankSetup, TorchrunOnOneHost) {
  const Variables oneHost = changed(torchrun, {{"LOCAL_WORLD_SIZE", "8"},
                                               {"LOCAL_RANK", "5"},
                                               {"FSDPQ_JOB_TOKEN", ""}});
  // Ranks of one host meet on the loopback address, whatever the host is
  // called.
  EXPECT_EQ(setupOf(oneHost).masterAddress, "127.0.0.1");
  EXPECT_EQ(setupOf(oneHost).token, "");
  // torchrun's agent listens at the port itself.
  auto agent = [&](const char *port, const RankOptions &options = {}) {
    return setupOf(changed(oneHost, {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                     {"MASTER_PORT", port}}),
                   options)
        .masterPort;
  };
  EXPECT_EQ(agent("29400"), 29401);
  EXPECT_EQ(agent("65535"), 65534);
  EXPECT_EQ(agent("29400", {.masterPort = 4000}), 4000);
}

TEST(RankSetup, TorchrunContradictions) {
  auto id = [](const Variables &changes, const std::string &fragment,
               const RankOptions &options = {}) {
    return errorId([&] { setupOf(changed(torchrun, changes), options); },
                   fragment);
  };
  EXPECT_EQ(id({{"RANK", "8"}}, "RANK is \"8\""), 6051);
  EXPECT_EQ(id({{"RANK", "-1"}}, "from 0 to 7"), 6051);
  EXPECT_EQ(id({{"RANK", "five"}}, "\"five\""), 6051);
  EXPECT_EQ(id({{"RANK", ""}}, "RANK is not"), 6051);
  EXPECT_EQ(id({{"WORLD_SIZE", ""}}, "WORLD_SIZE is not"), 6051);
  EXPECT_EQ(id({{"WORLD_SIZE", "0"}}, "WORLD_SIZE is \"0\""), 6051);
  EXPECT_EQ(id({{"LOCAL_WORLD_SIZE", ""}}, "LOCAL_WORLD_SIZE is not"), 6051);
  EXPECT_EQ(id({{"LOCAL_WORLD_SIZE", "9"}}, "LOCAL_WORLD_SIZE"), 6051);
  EXPECT_EQ(id({{"LOCAL_RANK", "4"}}, "from 0 to 3"), 6051);
  EXPECT_EQ(id({{"MASTER_PORT", ""}}, "--master_port"), 6051);
  EXPECT_EQ(id({{"MASTER_PORT", "65536"}}, "MASTER_PORT"), 6051);
  EXPECT_EQ(id({{"MASTER_ADDR", ""}}, "--master_addr"), 6051);
  EXPECT_EQ(id({{"FSDPQ_JOB_TOKEN", ""}}, "need a job token"), 6052);
  EXPECT_EQ(id({}, "--nproc_per_node is 8", {.ranksPerHost = 8}), 6050);
  EXPECT_EQ(id({}, "--world_size is 4", {.ranks = 4}), 6050);
  EXPECT_EQ(id({}, "MASTER_ADDR is first", {.masterAddress = "other"}), 6050);
  EXPECT_EQ(id({}, "MASTER_PORT is 29400", {.masterPort = 29401}), 6050);
  EXPECT_EQ(setupOf(torchrun, {.ranksPerHost = 4,
                               .ranks = 8,
                               .masterAddress = "first.example",
                               .masterPort = 29400})
                .rank,
            5);
}

//===--- SLURM --------------------------------------------------------------//

TEST(RankSetup, SlurmTasks) {
  const RankSetup setup = setupOf(slurm);
  EXPECT_EQ(setup.starts, 0);
  EXPECT_EQ(setup.rank, 3);
  EXPECT_EQ(setup.ranks, 5);
  EXPECT_EQ(setup.localRank, 1);
  EXPECT_EQ(setup.localRanks, 2);
  EXPECT_EQ(setup.masterAddress, "n07");
  EXPECT_EQ(setup.masterPort, 12000 + 7 + 3);
  // Another step of the job meets elsewhere.
  EXPECT_EQ(setupOf(changed(slurm, {{"SLURM_STEP_ID", "4"}})).masterPort,
            12000 + 7 + 4);
  const RankSetup chosen =
      setupOf(changed(slurm, {{"MASTER_ADDR", "n08"}}), {.masterPort = 4000});
  EXPECT_EQ(chosen.masterAddress, "n08");
  EXPECT_EQ(chosen.masterPort, 4000);
  EXPECT_EQ(setupOf(slurm, {.masterAddress = "n09"}).masterAddress, "n09");
}

TEST(RankSetup, SlurmTasksThatStartRanks) {
  const RankSetup setup = setupOf(slurmHosts, {.ranksPerHost = 4});
  EXPECT_EQ(setup.starts, 4);
  EXPECT_EQ(setup.rank, 4);
  EXPECT_EQ(setup.ranks, 12);
  EXPECT_EQ(setup.localRanks, 4);
  EXPECT_EQ(setup.masterAddress, "n07");
  EXPECT_EQ(setup.masterPort, 12010);
  EXPECT_EQ(setup.token, "0123456789abcdef");
  EXPECT_EQ(setupOf(slurmHosts, {.ranksPerHost = 4, .ranks = 12}).starts, 4);
  // Without it, or with 1, the tasks are ranks.
  EXPECT_EQ(setupOf(slurmHosts).starts, 0);
  EXPECT_EQ(setupOf(slurmHosts, {.ranksPerHost = 1}).ranks, 3);
  // A step of one task is like no step at all.
  EXPECT_EQ(
      setupOf({{"SLURM_STEP_NUM_TASKS", "1"}}, {.ranksPerHost = 2}).starts, 2);
}

TEST(RankSetup, SlurmContradictions) {
  auto id = [](const Variables &base, const Variables &changes,
               const std::string &fragment, const RankOptions &options = {}) {
    return errorId([&] { setupOf(changed(base, changes), options); }, fragment);
  };
  EXPECT_EQ(id(slurm, {}, "--nproc_per_node is 4", {.ranksPerHost = 4}), 6050);
  EXPECT_EQ(id(slurm, {}, "--world_size is 3", {.ranks = 3}), 6050);
  EXPECT_EQ(
      id(slurmHosts, {}, "--world_size is 3", {.ranksPerHost = 4, .ranks = 3}),
      6050);
  EXPECT_EQ(id(slurm, {{"SLURM_STEP_TASKS_PER_NODE", "5"}}, "lists 1 hosts"),
            6050);
  EXPECT_EQ(id(slurm, {{"SLURM_STEP_NUM_TASKS", "many"}}, "many"), 6051);
  EXPECT_EQ(id(slurm, {{"SLURM_PROCID", ""}}, "SLURM_PROCID is not"), 6051);
  EXPECT_EQ(id(slurm, {{"SLURM_NODEID", "3"}}, "SLURM_NODEID"), 6051);
  EXPECT_EQ(id(slurm, {{"SLURM_LOCALID", "2"}}, "SLURM_LOCALID"), 6051);
  EXPECT_EQ(id(slurm, {{"SLURM_STEP_NODELIST", "n[7"}}, "n[7"), 6051);
  EXPECT_EQ(id(slurm, {{"SLURM_STEP_NODELIST", ""}}, "--master_addr"), 6051);
  EXPECT_EQ(id(slurm, {{"SLURM_JOB_ID", ""}}, "--master_port"), 6051);
  EXPECT_EQ(id(slurmHosts, {{"FSDPQ_JOB_TOKEN", ""}}, "job token",
               {.ranksPerHost = 2}),
            6052);
}
