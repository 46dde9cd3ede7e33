//===- JobToken.h - The secret that the ranks of a run share ----*- C++ -*-===//
//
// Whoever does not know it is refused by rank 0. Ranks of one host are given
// one by whoever starts them; ranks of several hosts need one from the user, in
// FSDPQ_JOB_TOKEN or in a file, never on a command line, which all users see.
//
// Errors (exit code BadInput): 6052 the token is missing, too short, readable
// by others, or two of them differ.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/fsdpq-run/ranks/Environment.h"

#include <string>

namespace fsdpq::run {

inline constexpr const char *tokenVariable = "FSDPQ_JOB_TOKEN";

/// The token in the file (its name may be "") or the environment; "" if there
/// is neither.
std::string readJobToken(const std::string &file,
                         const Environment &environment);

/// Error 6052: ranks on several hosts that have none.
[[noreturn]] void failWithoutToken();

/// A new one that nobody can guess.
std::string newJobToken();

} // namespace fsdpq::run
