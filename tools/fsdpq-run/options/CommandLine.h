//===- CommandLine.h - Words to options -------------------------*- C++ -*-===//
//
// fsdpq-run [COMMAND] [--option VALUE | --option=VALUE | --flag | --no-flag]...
//
// Hyphens and underscores are the same. A boolean takes true, false, yes, no, 1
// or 0 (in any case), or stands alone. Nothing is guessed: an abbreviation, a
// word that belongs to no option and an option given twice are errors.
//
// Errors (exit code BadInput): 6001 unknown option, 6002 unknown command, 6003
// stray word, 6004 value missing, 6005 wrong value, 6006 given twice, 6007 not
// there yet, 6008 not an option of this command.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/fsdpq-run/options/OptionTable.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpq::run {

/// The values of one command line, checked against the table. Getters take the
/// name of an option of that kind; the value given, else the default, which
/// must exist.
class Options {
public:
  bool isGiven(std::string_view name) const;

  bool boolean(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;

  /// Nothing if neither a value was given nor a default exists.
  std::optional<std::string> find(std::string_view name) const;

  /// As if it had been given; the value is not checked.
  void set(std::string_view name, std::string value);

private:
  std::map<std::string, std::string, std::less<>> given;
};

struct CommandLine {
  enum class Help { None, Text, Markdown };

  Command command = Train;
  Options options;
  Help help = Help::None;
  /// What the user should know: options that have no effect, and why.
  std::vector<std::string> notes;
};

CommandLine parseCommandLine(const std::vector<std::string> &words);

/// --help: usage, the options of `command` by group.
std::string helpText(Command command);

/// The README's table of all options with their classes.
std::string optionsMarkdown();

} // namespace fsdpq::run
