//===- Gpu.cpp - Checks and measurements on a GPU -------------------------===//
//
//   fsdpq_gpu kernels [--group NAME] [--seconds LIMIT]
//   fsdpq_gpu attention FOLDER [ARCHITECTURE]
//   fsdpq-run [words of fsdpq-run]...         (the same file by another name)
//   fsdpq_gpu step --config config.json [option value]...
//
//===----------------------------------------------------------------------===//

#include "test/gpu/Gpu.h"

#include "tools/fsdpq-run/Main.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

int main(int argc, char **argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  try {
    // One program to carry instead of two.
    if (std::filesystem::path(argv[0]).filename() == "fsdpq-run")
      return fsdpq::run::runProgram(argc, argv);
    if (command == "kernels")
      return fsdpq::test::checkKernels(argc - 2, argv + 2);
    if (command == "attention")
      return fsdpq::test::dumpAttention(argc - 2, argv + 2);
    if (command == "step")
      return fsdpq::test::measureStep(argc - 2, argv + 2);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: fsdpq_gpu kernels|attention|step [option value]...\n");
  return 2;
}
