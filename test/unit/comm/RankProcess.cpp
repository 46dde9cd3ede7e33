//===- RankProcess.cpp - A rank that is a process, for tests --------------===//
//
// usage: fsdpq_comm_rank RANK SIZE PORT [name=value ...]
//
//   address=A      where rank 0 listens
//   token=T        plan=HASH (a fingerprint)
//   connect=MS silence=MS collective=MS   limits
//   rounds=N       collectives to call; by default it goes on for ever
//   busy=MS        what it computes before the collectives
//
// Prints "ready" after its first collective and, at its end, "done" or
// "error ID TEXT", the text on one line.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/gloo/GlooCommunicator.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

using namespace fsdpq::rt;
using std::chrono::milliseconds;

static void say(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

static void run(const GlooOptions &options, int64_t rounds, milliseconds busy) {
  const auto communicator = connectGloo(options);
  CpuDevice device(1);
  std::vector<int64_t> members(static_cast<size_t>(options.size));
  std::iota(members.begin(), members.end(), int64_t(0));
  const auto channel = communicator->openChannel(members, device, 0, "gather");
  std::vector<int64_t> mine(1, options.rank), all(members.size());
  const auto address = [](std::vector<int64_t> &values) {
    return reinterpret_cast<DeviceAddress>(values.data());
  };
  for (int64_t round = 0; round != rounds; ++round) {
    if (round == 1) {
      say("ready");
      std::this_thread::sleep_for(busy);
    }
    channel->allGather(address(mine), address(all), 8, "model.mlir:3:7");
    if (all != members)
      throw Error(4099, ExitCode::RunFailure, "gathered something else");
    std::this_thread::sleep_for(milliseconds(1));
  }
}

int main(int count, char **words) {
  ::alarm(40);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (count < 4)
    return 2;
  std::map<std::string, std::string> given;
  for (int i = 4; i < count; ++i) {
    const std::string word = words[i];
    const size_t equals = word.find('=');
    given[word.substr(0, equals)] = word.substr(equals + 1);
  }
  const auto number = [&](const char *name, int64_t otherwise) {
    return given.contains(name) ? std::stoll(given[name]) : otherwise;
  };
  GlooOptions options;
  options.rank = std::stoll(words[1]);
  options.size = std::stoll(words[2]);
  options.masterPort = static_cast<uint16_t>(std::stoi(words[3]));
  if (given.contains("address"))
    options.masterAddress = given["address"];
  options.token = given["token"];
  options.fingerprint = {{"version", "1.2"}, {"plan hash", given["plan"]}};
  options.connectTimeout = milliseconds(number("connect", 20000));
  options.silenceLimit = milliseconds(number("silence", 5000));
  options.collectiveTimeout = milliseconds(number("collective", 30000));
  try {
    run(options, number("rounds", -1), milliseconds(number("busy", 0)));
  } catch (const Error &error) {
    say("error " + std::to_string(error.id()) + " " + error.what());
    return static_cast<int>(error.exitCode());
  }
  say("done");
  return 0;
}
