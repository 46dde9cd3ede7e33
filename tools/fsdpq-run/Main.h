//===- Main.h - fsdpq-run, from words to an exit code -----------*- C++ -*-===//
#pragma once

namespace fsdpq::run {

/// Runs the command line. Reports every failure on the standard error and
/// returns the exit code (see rt::ExitCode); throws nothing.
int runCommandLine(int argc, char **argv) noexcept;

} // namespace fsdpq::run
