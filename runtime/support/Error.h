//===- Error.h - What the runtime reports to its user -----------*- C++ -*-===//
//
// Every failure a user can cause or meet is an Error: what is wrong (with the
// value), where (file, field, tensor, plan instruction), and what to do. Its
// stable id (FSDPQ-nnnn) can be searched for; its exit code is the one that
// fsdpq-run ends with.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <exception>
#include <string>

namespace fsdpq::rt {

/// The exit codes of fsdpq-run. A signal ends it with 128 + its number.
enum class ExitCode {
  Success = 0,
  RunFailure = 1,
  BadInput = 2,
  DoesNotFit = 3,
  NonFiniteLoss = 4,
  PeerFailure = 5,
};

/// Blocks of ids: 1xxx files (10 safetensors, 11 GGUF, 12 JSON and
/// configuration, 13 operating system), 2xxx data (20 tokenizer, 21 data set),
/// 3xxx plan, 4xxx device and executor, 5xxx training and checkpoints,
/// 6xxx command line, 7xxx ranks and what they tell each other. The compiler's diagnostics use 0xxx.
class Error : public std::exception {
public:
  /// `what` holds the offending value, `where` names the place ("" if `what`
  /// says it), `hint` tells what to do ("" if nothing can be done).
  Error(int id, ExitCode code, std::string what, std::string where = "",
        std::string hint = "");

  int id() const { return id_; }
  ExitCode exitCode() const { return code_; }

  /// "error[FSDPQ-1001]: <what>\n  --> <where>\n  hint: <hint>"
  const char *what() const noexcept override { return text.c_str(); }

private:
  int id_;
  ExitCode code_;
  std::string text;
};

/// An Error (1301) for a failed system call, with errno's text. Reading what a
/// user named fails as BadInput, all else as RunFailure.
Error systemError(const std::string &action, const std::string &path,
                  ExitCode code = ExitCode::RunFailure);

} // namespace fsdpq::rt
