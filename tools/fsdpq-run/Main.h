//===- Main.h - fsdpq-run, from words to an exit code -----------*- C++ -*-===//
#pragma once

namespace fsdpq::run {

/// All of the program fsdpq-run. Reports every failure on the standard error and
/// returns the exit code (see rt::ExitCode); throws nothing.
int runProgram(int argc, char **argv) noexcept;

} // namespace fsdpq::run
