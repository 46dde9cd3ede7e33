#include "tools/fsdpq-run/ranks/RankSetup.h"

#include "runtime/support/Error.h"
#include "tools/fsdpq-run/options/Values.h"
#include "tools/fsdpq-run/ranks/JobToken.h"
#include "tools/fsdpq-run/ranks/SlurmLists.h"

#include <sys/socket.h>

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

namespace {

constexpr int64_t maxRanks = 65536, maxPort = 65535;

[[noreturn]] void contradict(const std::string &what) {
  throw Error(6050, ExitCode::BadInput, what, "",
              "leave one of them out, or make them agree");
}

class Reader {
public:
  Reader(const RankOptions &options, const Environment &environment)
      : options(options), environment(environment) {}

  RankSetup read() {
    if (isLaunchedRank())
      readLaunchedRank();
    else if (number("SLURM_STEP_NUM_TASKS", 1, maxRanks).value_or(1) > 1)
      readSlurm();
    else
      readOptions();
    requireAgreement();
    if (setup.ranks > 1)
      readToken();
    return setup;
  }

private:
  /// A whole number in [min, max]; nothing if the variable is not set.
  std::optional<int64_t> number(const std::string &name, int64_t min,
                                int64_t max) const {
    const std::optional<std::string> text = environment(name);
    if (!text)
      return std::nullopt;
    const std::optional<int64_t> value = readInteger(*text);
    if (!value || *value < min || *value > max)
      throw Error(6051, ExitCode::BadInput, name + " is \"" + *text + "\"",
                  "the environment",
                  "expected a whole number from " + std::to_string(min) +
                      " to " + std::to_string(max));
    return value;
  }

  int64_t required(const std::string &name, int64_t min, int64_t max,
                   const std::string &beside) const {
    if (const std::optional<int64_t> value = number(name, min, max))
      return *value;
    throw Error(
        6051, ExitCode::BadInput, beside + " is set, but " + name + " is not",
        "the environment",
        "start the ranks with --nproc_per_node, torchrun or srun, which "
        "set all of them");
  }

  bool isLaunchedRank() const {
    // Some environments say that there is one process and nothing more.
    return environment("RANK") || number("WORLD_SIZE", 1, maxRanks) > 1;
  }

  void readLaunchedRank() {
    const std::string beside = environment("RANK") ? "RANK" : "WORLD_SIZE";
    setup.ranks = required("WORLD_SIZE", 1, maxRanks, beside);
    setup.rank = required("RANK", 0, setup.ranks - 1, beside);
    if (setup.ranks == 1)
      return;
    setup.localRanks = required("LOCAL_WORLD_SIZE", 1, setup.ranks, beside);
    setup.localRank = required("LOCAL_RANK", 0, setup.localRanks - 1, beside);
    readMaster(std::nullopt, std::nullopt);
    if (setup.rank == 0)
      readListenDescriptor();
  }

  void readListenDescriptor() {
    const auto descriptor = number(listenVariable, 0, 1 << 20);
    if (!descriptor)
      return;
    setup.listenDescriptor = static_cast<int>(*descriptor);
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(setup.listenDescriptor, SOL_SOCKET, SO_ACCEPTCONN,
                     &listens, &size) != 0 ||
        !listens)
      throw Error(6051, ExitCode::BadInput,
                  std::string(listenVariable) + " is " +
                      std::to_string(*descriptor) +
                      ", which is no listening socket",
                  "the environment", "unset it: only the launcher sets it");
  }

  void readSlurm() {
    const std::string beside = "SLURM_STEP_NUM_TASKS";
    const int64_t tasks = required(beside, 1, maxRanks, beside);
    const int64_t hosts = required("SLURM_STEP_NUM_NODES", 1, tasks, beside);
    const int64_t task = required("SLURM_PROCID", 0, tasks - 1, beside);
    const int64_t host = required("SLURM_NODEID", 0, hosts - 1, beside);
    const int64_t started = options.ranksPerHost.value_or(1);
    if (started > 1 && tasks == hosts) {
      setup.starts = setup.localRanks = started;
      setup.rank = host * started;
      setup.ranks = hosts * started;
    } else {
      setup.rank = task;
      setup.ranks = tasks;
      setup.localRanks = tasksOfHost(host, hosts);
      setup.localRank =
          required("SLURM_LOCALID", 0, setup.localRanks - 1, beside);
    }
    const std::string list = "SLURM_STEP_NODELIST";
    const std::optional<std::string> names = environment(list);
    readMaster(names ? std::optional(expandHostList(*names, list).front())
                     : std::nullopt,
               slurmPort());
  }

  int64_t tasksOfHost(int64_t host, int64_t hosts) const {
    const std::string name = "SLURM_STEP_TASKS_PER_NODE";
    const std::vector<int64_t> counts =
        expandCounts(environment(name).value_or(""), name);
    if (static_cast<int64_t>(counts.size()) != hosts)
      contradict(name + " lists " + std::to_string(counts.size()) +
                 " hosts, SLURM_STEP_NUM_NODES is " + std::to_string(hosts));
    return counts[static_cast<size_t>(host)];
  }

  /// The same for all tasks of a step, and different for steps that run at a
  /// time; below the ports that systems give out themselves.
  std::optional<uint16_t> slurmPort() const {
    const auto job = number("SLURM_JOB_ID", 0, INT64_MAX / 2);
    if (!job)
      return std::nullopt;
    constexpr int64_t first = 12000, count = 20000;
    const int64_t step = number("SLURM_STEP_ID", 0, INT64_MAX / 2).value_or(0);
    return static_cast<uint16_t>(first + (*job % count + step % count) % count);
  }

  void readOptions() {
    const int64_t started = options.ranksPerHost     ? *options.ranksPerHost
                            : options.ranks          ? *options.ranks
                            : options.ranksByDefault ? options.ranksByDefault()
                                                     : 1;
    if (started == 1)
      return;
    setup.starts = setup.ranks = setup.localRanks = started;
    if (options.masterPort)
      setup.masterPort = *options.masterPort;
  }

  /// Where rank 0 listens; `address` and `port` hold if nobody says otherwise.
  void readMaster(const std::optional<std::string> &address,
                  const std::optional<uint16_t> &port) {
    const auto givenPort = number("MASTER_PORT", 1, maxPort);
    // 0 asks the launcher for a free port, which it then sets.
    const uint16_t option = options.masterPort.value_or(0);
    // torchrun's own agent may hold the port that it names.
    const bool isTaken = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
    if (givenPort && option && !isTaken && *givenPort != option)
      contradict("--master_port is " + std::to_string(option) +
                 ", MASTER_PORT is " + std::to_string(*givenPort));
    if (option)
      setup.masterPort = option;
    else if (givenPort)
      setup.masterPort =
          static_cast<uint16_t>(!isTaken               ? *givenPort
                                : *givenPort < maxPort ? *givenPort + 1
                                                       : *givenPort - 1);
    else if (port)
      setup.masterPort = *port;
    else
      failWithout("MASTER_PORT", "--master_port");
    if (setup.isOnOneHost())
      return;

    const auto givenAddress = environment("MASTER_ADDR");
    if (givenAddress && options.masterAddress &&
        *givenAddress != *options.masterAddress)
      contradict("--master_addr is " + *options.masterAddress +
                 ", MASTER_ADDR is " + *givenAddress);
    if (options.masterAddress)
      setup.masterAddress = *options.masterAddress;
    else if (givenAddress)
      setup.masterAddress = *givenAddress;
    else if (address)
      setup.masterAddress = *address;
    else
      failWithout("MASTER_ADDR", "--master_addr");
  }

  [[noreturn]] static void failWithout(const std::string &variable,
                                       const std::string &option) {
    throw Error(6051, ExitCode::BadInput,
                "nothing says where rank 0 listens: " + variable +
                    " is not set",
                "", "set it, or give " + option);
  }

  void requireAgreement() const {
    const std::string address = options.masterAddress.value_or("localhost");
    if (setup.isOnOneHost() && setup.ranks > 1 && address != "localhost" &&
        address != "127.0.0.1")
      contradict("--master_addr is " + address +
                 ", but all ranks are on this host and meet at 127.0.0.1");
    if (options.ranks && *options.ranks != setup.ranks)
      contradict("--world_size is " + std::to_string(*options.ranks) +
                 ", but the run has " + std::to_string(setup.ranks) +
                 (setup.ranks == 1 ? " process" : " processes"));
    if (options.ranksPerHost && *options.ranksPerHost != setup.localRanks)
      contradict("--nproc_per_node is " +
                 std::to_string(*options.ranksPerHost) +
                 ", but this host has " + std::to_string(setup.localRanks) +
                 " of the run's " + std::to_string(setup.ranks) + " processes");
  }

  void readToken() {
    setup.token = readJobToken(options.tokenFile, environment);
    if (!setup.token.empty())
      return;
    if (!setup.isOnOneHost())
      failWithoutToken();
    if (setup.starts > 0)
      setup.token = newJobToken();
  }

  const RankOptions &options;
  const Environment &environment;
  RankSetup setup;
};

} // namespace

RankSetup readRankSetup(const RankOptions &options,
                        const Environment &environment) {
  return Reader(options, environment).read();
}

} // namespace fsdpq::run
