//===- CompileRequest.h - Settings to a request to the compiler -*- C++ -*-===//
#pragma once

#include "compiler/Pipelines/Compile.h"
#include "tools/fsdpq-run/options/Settings.h"

#include <string>

namespace fsdpq::run {

/// The programs of a plan that serve the command.
std::vector<std::string> programsOf(Command command);

/// All but the model's configuration and the places of files, which the caller
/// fills in.
CompileOptions makeCompileOptions(const Settings &settings);

} // namespace fsdpq::run
