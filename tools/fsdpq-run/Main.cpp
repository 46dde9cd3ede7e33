#include "tools/fsdpq-run/Main.h"

#include "runtime/support/Error.h"
#include "tools/fsdpq-run/Commands.h"
#include "tools/fsdpq-run/Console.h"
#include "tools/fsdpq-run/RankCommand.h"
#include "tools/fsdpq-run/ranks/RunTogether.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

namespace fsdpq::run {

using rt::ExitCode;

static int dispatch(const std::vector<std::string> &words) {
  const CommandLine line =
      parseCommandLine(std::vector(words.begin() + 1, words.end()));
  switch (line.help) {
  case CommandLine::Help::Text:
    printResult(helpText(line.command));
    return 0;
  case CommandLine::Help::Markdown:
    printResult(optionsMarkdown());
    return 0;
  case CommandLine::Help::None:
    break;
  }
  switch (line.command) {
  case Train:
    return runOnRanks(words, line, runTrain);
  case Plan:
    return runPlan(line);
  case Eval:
    return runOnRanks(words, line, runEval);
  case Generate:
    return runOnRanks(words, line, runGenerate);
  case Doctor:
    return runDoctor(line);
  }
  return static_cast<int>(ExitCode::BadInput);
}

static int report(const char *text, ExitCode code) {
  std::fprintf(stderr, "%s\n", text);
  return static_cast<int>(code);
}

/// OpenMP's threads spin while they wait unless told otherwise, which costs a
/// factor of ten beside any other busy process. The library reads the variable
/// when it is loaded, before main, so the program starts itself once more.
static void startWithPassiveWaiting(char **argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT"))
    return;
  if (::setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
    ::execv("/proc/self/exe", argv); // if it fails, the run is only slower
}

int runProgram(int argc, char **argv) noexcept {
  startWithPassiveWaiting(argv);
  // A file that grows beyond a limit is an error to report, not an end.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return dispatch(std::vector<std::string>(argv, argv + argc));
  } catch (const ReportedElsewhere &failure) {
    return failure.exitCode;
  } catch (const rt::Error &error) {
    return report(error.what(), error.exitCode());
  } catch (const std::bad_alloc &) {
    return report("error[FSDPQ-6026]: the host has not enough memory\n"
                  "  hint: lower --batch_size or --context_length; "
                  "fsdpq-run plan says what a run needs",
                  ExitCode::DoesNotFit);
  } catch (const std::exception &error) {
    std::fprintf(stderr,
                 "error[FSDPQ-6027]: unexpected failure: %s\n"
                 "  hint: this is a defect of fsdpq-run; please report it with "
                 "the command line\n",
                 error.what());
  } catch (...) {
    return report("error[FSDPQ-6027]: unexpected failure", ExitCode::RunFailure);
  }
  return static_cast<int>(ExitCode::RunFailure);
}

} // namespace fsdpq::run
