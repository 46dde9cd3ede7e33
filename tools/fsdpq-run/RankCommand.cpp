#include "tools/fsdpq-run/RankCommand.h"

#include "runtime/comm/Solo.h"
#include "runtime/comm/gloo/GlooCommunicator.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/support/Error.h"
#include "runtime/train/RankNumbers.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/DeviceChoice.h"
#include "tools/fsdpq-run/ranks/Launcher.h"
#include "tools/fsdpq-run/ranks/RankSetup.h"
#include "tools/fsdpq-run/ranks/RunTogether.h"

#include <algorithm>
#include <string_view>

namespace fsdpq::run {

using rt::Error;

namespace {

std::unique_ptr<rt::Communicator> connect(const RankSetup &setup,
                                          const Settings &settings) {
  if (setup.ranks == 1)
    return rt::makeSolo();
  rt::GlooOptions options;
  options.rank = setup.rank;
  options.size = setup.ranks;
  options.masterAddress = setup.masterAddress;
  options.masterPort = setup.masterPort;
  options.listenFd = setup.listenDescriptor;
  options.token = setup.token;
  options.fingerprint = {{"plan format", std::to_string(rt::planVersion)}};
  options.collectiveTimeout = settings.collectiveTimeout;
  // Nobody but us starts the others: they may be late, or never come.
  if (setup.listenDescriptor < 0 && setup.rank == 0)
    note("waiting at " + setup.masterAddress + ":" +
         std::to_string(setup.masterPort) + " for " +
         std::to_string(setup.ranks - 1) + " more processes");
  return rt::connectGloo(options);
}

void sayRanks(const RankSetup &setup, const Settings &settings) {
  if (setup.ranks == 1)
    return;
  note(std::to_string(setup.ranks) + " processes, " +
       std::to_string(setup.localRanks) + " on this machine; weights are " +
       (settings.shards == 1
            ? "not cut"
            : "cut into " + std::to_string(settings.shards) + " ranges"));
}

/// A share becomes bytes; all ranks take the least that one of them has.
void decideBudget(Settings &settings, const RankSetup &setup,
                  rt::Communicator &communicator) {
  if (settings.memoryShare == 0)
    return;
  const double mine = settings.memoryShare * memoryOfRank(settings, setup);
  double least = mine;
  for (const std::vector<double> &other :
       rt::exchangeNumbers(communicator, std::span(&mine, 1), "memory budgets"))
    least = std::min(least, other.front());
  settings.memoryBudget = static_cast<int64_t>(least);
}

std::string firstLine(const char *text) {
  const std::string_view all = text;
  return std::string(all.substr(0, all.find('\n')));
}

/// What all ranks throw alike, or rank 0 reports for all.
bool isReportedByRankZero(const Error &error) {
  constexpr int ids[] = {
      5020, 5021, // the loss, the gradients' norm: told to all
      5040,       // rank 0 failed in what it did for all
      7003,       // another rank failed
      7005,       // ranks call different collectives
      7020,       // ranks mean different runs
  };
  return std::find(std::begin(ids), std::end(ids), error.id()) != std::end(ids);
}

/// Whatever ends this rank must end the others.
int runOnThisRank(const CommandLine &line, const Settings &settings,
                  rt::Communicator &communicator, const RankCommand &command) {
  try {
    return command(line, settings, communicator);
  } catch (const ReportedElsewhere &) {
    throw; // all know
  } catch (const Error &error) {
    communicator.abort(firstLine(error.what()));
    if (communicator.rank() != 0 && isReportedByRankZero(error))
      throw ReportedElsewhere{static_cast<int>(error.exitCode())};
    throw;
  } catch (const std::exception &error) {
    communicator.abort(firstLine(error.what()));
    throw;
  }
}

} // namespace

int runOnRanks(const std::vector<std::string> &words, const CommandLine &line,
               const RankCommand &command) {
  // What is wrong with the command line is said once, before there are ranks.
  Settings settings = makeSettings(line);
  if (settings.command == Train)
    settings.rankOptions.ranksByDefault = [&] {
      return countRanksByDefault(settings);
    };
  const RankSetup setup =
      readRankSetup(settings.rankOptions, processEnvironment());
  decideMesh(settings, setup.ranks, setup.localRanks);
  if (setup.starts > 0) {
    LaunchOptions options;
    options.arguments = words;
    options.divideThreads = settings.threads == 0;
    return launchRanks(setup, options);
  }
  if (setup.rank > 0)
    beSilent();
  std::unique_ptr<rt::Communicator> communicator = connect(setup, settings);
  sayRanks(setup, settings);
  decideDevice(settings, setup, *communicator);
  communicator = communicatorFor(settings, setup, std::move(communicator));
  decideBudget(settings, setup, *communicator);
  return runOnThisRank(line, settings, *communicator, command);
}

} // namespace fsdpq::run
