//===- fsdpq-translate.cpp - Plans to text ----------------------*- C++ -*-===//
//
// For people and tests that look into a serialised plan. Ends with 0, or with
// 1 or 2 (see ExitCode) and a message on the standard error.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanText.h"
#include "runtime/support/Error.h"

#include <cstdio>
#include <string_view>

using namespace fsdpq::rt;

static const char usage[] =
    "usage: fsdpq-translate --plan-to-text FILE   print a plan as text\n"
    "       fsdpq-translate --check FILE          read a plan and check it\n";

static int translate(int argc, char **argv) {
  const std::string_view action = argc > 1 ? argv[1] : "";
  if (action == "--help") {
    std::fputs(usage, stdout);
    return 0;
  }
  if (argc != 3 || (action != "--plan-to-text" && action != "--check")) {
    std::fputs(usage, stderr);
    return static_cast<int>(ExitCode::BadInput);
  }

  auto plan = LoadedPlan::fromFile(argv[2]);
  if (action == "--check") {
    std::printf("plan %s is sound\n", plan->hash().c_str());
    return 0;
  }
  const std::string text = planText(*plan);
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
