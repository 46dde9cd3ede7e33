//===- OptionTable.h - Every option of fsdpq-run ----------------*- C++ -*-===//
//
// The one list from which the parser's checks, --help and the README's table
// come. It holds all options of the reference (fsdp_qlora's train.py), so that
// its command lines can be used as they are, and our own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <limits>
#include <span>
#include <string_view>

namespace fsdpq::run {

enum Command : unsigned {
  Train = 1,
  Plan = 2,
  Eval = 4,
  Generate = 8,
  Doctor = 16,
};

/// What `fsdpq-run COMMAND` means; the first is the default.
struct CommandSpec {
  Command command;
  std::string_view name, help;
};

enum class OptionClass {
  Honoured,
  /// Accepted; one line says that and why it has no effect.
  Moot,
  /// Known, but refused; its inert value, which asks for nothing, is accepted.
  NotYet,
};

enum class ValueKind { Bool, Int, Real, Text, Choice, List };

struct OptionSpec {
  std::string_view name; ///< with underscores
  ValueKind kind = ValueKind::Text;
  /// What holds if the option is omitted; "" means that the help text says so.
  std::string_view byDefault = "";
  /// In one sentence, with no full stop. For a moot option: why it has no effect.
  std::string_view help = "";
  std::string_view group = "";
  unsigned commands = Train | Plan;
  OptionClass optionClass = OptionClass::Honoured;
  /// Of Choice and List (which takes any word where this is ""): a|b|c.
  std::string_view choices = "";
  /// Choices that are known but refused as not yet there.
  std::string_view laterChoices = "";
  /// Of Int and Real: the range, ends included.
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  /// Of NotYet: the value that asks for nothing.
  std::string_view inert = "";
  std::string_view alias = "";
};

std::span<const CommandSpec> commandTable();
/// Commands that are planned, separated by '|'.
inline constexpr std::string_view laterCommands =
    "preview|merge|export|convert";

std::span<const OptionSpec> optionTable();

/// By name or alias, spelt with underscores; null if there is none.
const OptionSpec *findOption(std::string_view name);

/// Calls `action` for each part of "a|b|c"; no part for "".
template <typename Action>
void forEachChoice(std::string_view choices, Action action) {
  while (!choices.empty()) {
    const size_t end = choices.find('|');
    action(choices.substr(0, end));
    choices = end == std::string_view::npos ? "" : choices.substr(end + 1);
  }
}

} // namespace fsdpq::run
