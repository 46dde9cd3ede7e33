//===- fsdpq-run.cpp - Fine-tunes, evaluates, plans -------------*- C++ -*-===//
//
// Everything is in the library beside this: a tool that links the compiler is
// built without exceptions, and the runtime throws.
//
//===----------------------------------------------------------------------===//

#include "tools/fsdpq-run/Main.h"

int main(int argc, char **argv) { return fsdpq::run::runProgram(argc, argv); }
