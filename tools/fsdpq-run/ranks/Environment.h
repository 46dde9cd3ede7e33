//===- Environment.h - The variables a process was started with -*- C++ -*-===//
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace fsdpq::run {

/// The value of a variable; nothing if it is not set or empty.
using Environment =
    std::function<std::optional<std::string>(const std::string &)>;

/// This process's own.
Environment processEnvironment();

} // namespace fsdpq::run
