//===- fsdpq-translate.cpp - Plans to text ----------------------*- C++ -*-===//
//
// For people and tests that look into a serialised plan. Ends with 0, or with
// 1 or 2 (see ExitCode) and a message on the standard error.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/KernelTable.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanText.h"
#include "runtime/plan/ScheduleCheck.h"
#include "runtime/support/Error.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

using namespace fsdpq::rt;

static const char usage[] =
    "usage: fsdpq-translate --plan-to-text FILE   print a plan as text\n"
    "       fsdpq-translate --check FILE          read a plan and check it\n"
    "       fsdpq-translate --check-schedule FILE\n"
    "                    also check the order of its streams: a line for each\n"
    "                    fault, and status 1 if there is one\n"
    "       fsdpq-translate --kernel-table FILE\n"
    "                    what each kernel needs: threads, registers, bytes\n"
    "                    spilled, bytes of shared memory, bytes of code\n";

/// Prints the faults, or one line that there are none.
static ExitCode printSchedule(const LoadedPlan &loaded) {
  const fsdpq::plan::Plan &plan = loaded.plan();
  const std::vector<ScheduleFault> faults = checkSchedule(plan);
  for (const ScheduleFault &fault : faults)
    std::printf("%s: %s\n", scheduleFaultName(fault.kind),
                fault.message.c_str());
  if (!faults.empty())
    return ExitCode::RunFailure;
  std::printf("plan %s: the %u functions are ordered on %u streams by %u "
              "events\n",
              loaded.hash().c_str(), plan.functions()->size(),
              plan.streams()->size(), plan.events());
  return ExitCode::Success;
}

static int translate(int argc, char **argv) {
  const std::string_view action = argc > 1 ? argv[1] : "";
  if (action == "--help") {
    std::fputs(usage, stdout);
    return 0;
  }
  if (argc != 3 || (action != "--plan-to-text" && action != "--check" &&
                    action != "--check-schedule" &&
                    action != "--kernel-table")) {
    std::fputs(usage, stderr);
    return static_cast<int>(ExitCode::BadInput);
  }

  auto plan = LoadedPlan::fromFile(argv[2]);
  if (action == "--check") {
    std::printf("plan %s is sound\n", plan->hash().c_str());
    return 0;
  }
  if (action == "--check-schedule")
    return static_cast<int>(printSchedule(*plan));
  const std::string text = action == "--kernel-table"
                               ? kernelTable(plan->plan())
                               : planText(*plan);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
      std::fflush(stdout) != 0)
    throw systemError("writing", "standard output");
  return 0;
}

int main(int argc, char **argv) {
  try {
    return translate(argc, argv);
  } catch (const Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exitCode());
  }
}
