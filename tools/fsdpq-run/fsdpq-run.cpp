//===- fsdpq-run.cpp - Fine-tunes, evaluates, plans -------------*- C++ -*-===//
//
// Everything is in the library beside this: a tool that links the compiler is
// built without exceptions, and the runtime throws.
//
//===----------------------------------------------------------------------===//

#include "tools/fsdpq-run/Main.h"

#include <csignal>
#include <cstdlib>
#include <unistd.h>

/// OpenMP's threads spin while they wait unless told otherwise, which costs a
/// factor of ten beside any other busy process. The library reads the variable
/// when it is loaded, before main, so the program starts itself once more.
static void startWithPassiveWaiting(char **argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT"))
    return;
  if (::setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
    ::execv("/proc/self/exe", argv); // if it fails, the run is only slower
}

int main(int argc, char **argv) {
  startWithPassiveWaiting(argv);
  // A file that grows beyond a limit is an error to report, not an end.
  std::signal(SIGXFSZ, SIG_IGN);
  return fsdpq::run::runCommandLine(argc, argv);
}
