#include "tools/fsdpq-run/options/CommandLine.h"

#include "runtime/support/Error.h"
#include "tools/fsdpq-run/options/Values.h"

#include <algorithm>
#include <stdexcept>

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

namespace {

[[noreturn]] void fail(int id, std::string what, std::string hint) {
  throw Error(id, ExitCode::BadInput, std::move(what), "", std::move(hint));
}

std::string_view commandName(Command command) {
  for (const CommandSpec &spec : commandTable())
    if (spec.command == command)
      return spec.name;
  return "";
}

const char seeHelp[] = "fsdpq-run --help lists the options";

class Parser {
public:
  explicit Parser(const std::vector<std::string> &words) : words(words) {}

  CommandLine parse() {
    if (!words.empty() && !words[0].empty() && words[0][0] != '-')
      readCommand(words[next++]);
    while (next < words.size())
      readWord(words[next++]);
    return std::move(result);
  }

private:
  void readCommand(const std::string &word) {
    std::vector<std::string_view> names;
    for (const CommandSpec &spec : commandTable()) {
      names.push_back(spec.name);
      if (spec.name == word) {
        result.command = spec.command;
        return;
      }
    }
    if (isChoice(laterCommands, word))
      fail(6007, "the command \"" + word + "\" is not there yet", "");
    const std::string_view near = nearest(word, names);
    fail(6002, "unknown command \"" + word + "\"",
         near.empty() ? "fsdpq-run --help lists the commands"
                      : "did you mean " + std::string(near) + "?");
  }

  void readWord(const std::string &word) {
    if (word == "--help" || word == "-h") {
      result.help = CommandLine::Help::Text;
      return;
    }
    if (word == "--help-options-markdown") {
      result.help = CommandLine::Help::Markdown;
      return;
    }
    if (!word.starts_with("--"))
      fail(6003, "\"" + word + "\" belongs to no option",
           word.starts_with("-") ? "options start with two hyphens"
                                 : "quote a value that has spaces");
    const size_t equals = word.find('=');
    std::string name = word.substr(2, equals - 2);
    std::ranges::replace(name, '-', '_');
    std::optional<std::string> value;
    if (equals != std::string::npos)
      value = word.substr(equals + 1);

    const OptionSpec *option = findOption(name);
    if (!option && name.starts_with("no_")) {
      option = findOption(name.substr(3));
      if (option && (option->kind != ValueKind::Bool || value))
        fail(6005, word + " is not possible",
             option->kind == ValueKind::Bool
                 ? "write " + word.substr(0, equals) + " without a value"
                 : "--" + std::string(option->name) + " is not a boolean");
      value = "false";
    }
    if (!option)
      failUnknown(word.substr(0, equals), name);
    if (!value)
      value = takeValue(*option);
    add(*option, *value);
  }

  [[noreturn]] static void failUnknown(const std::string &word,
                                       const std::string &name) {
    std::vector<std::string_view> names;
    for (const OptionSpec &option : optionTable()) {
      names.push_back(option.name);
      if (!option.alias.empty())
        names.push_back(option.alias);
    }
    const std::string_view near = nearest(name, names);
    fail(6001, "unknown option " + word,
         near.empty() ? seeHelp : "did you mean --" + std::string(near) + "?");
  }

  /// The word after an option that has no "=".
  std::string takeValue(const OptionSpec &option) {
    const bool hasNext = next < words.size();
    if (option.kind == ValueKind::Bool)
      return hasNext && readBoolean(words[next]) ? words[next++] : "true";
    // "-1" is a value, "--x" is the next option.
    const bool isValue =
        hasNext && (!words[next].starts_with("-") || words[next] == "-" ||
                    readReal(words[next]));
    if (!isValue)
      fail(6004, "--" + std::string(option.name) + " needs a value",
           "write --" + std::string(option.name) + "=VALUE if it starts with "
                                                   "a hyphen");
    return words[next++];
  }

  void add(const OptionSpec &option, const std::string &value) {
    const std::string name = "--" + std::string(option.name);
    if (result.options.isGiven(option.name))
      fail(6006, name + " is given twice", "leave one of them out");
    std::string checked = checkValue(option, value);
    result.options.set(option.name, checked);
    switch (option.optionClass) {
    case OptionClass::Honoured:
      break;
    case OptionClass::Moot:
      result.notes.push_back(name + " has no effect: " +
                             std::string(option.help));
      break;
    case OptionClass::NotYet:
      if (checked != option.inert || option.inert.empty())
        fail(6007, name + " is not there yet (" + std::string(option.help) +
                       ")", "leave it out");
      break;
    }
    given.push_back(&option);
  }

public:
  void checkCommand(Command command) const {
    for (const OptionSpec *option : given)
      if (!(option->commands & command))
        fail(6008,
             "--" + std::string(option->name) + " is not an option of " +
                 std::string(commandName(command)),
             "leave it out; fsdpq-run " + std::string(commandName(command)) +
                 " --help lists its options");
  }

private:
  const std::vector<std::string> &words;
  size_t next = 0;
  CommandLine result;
  std::vector<const OptionSpec *> given;
};

} // namespace

CommandLine parseCommandLine(const std::vector<std::string> &words) {
  Parser parser(words);
  CommandLine result = parser.parse();
  parser.checkCommand(result.command);
  return result;
}

bool Options::isGiven(std::string_view name) const {
  return given.contains(name);
}

std::optional<std::string> Options::find(std::string_view name) const {
  if (auto value = given.find(name); value != given.end())
    return value->second;
  const OptionSpec *option = findOption(name);
  if (option && !option->byDefault.empty())
    return std::string(option->byDefault);
  return std::nullopt;
}

std::string Options::text(std::string_view name) const {
  if (std::optional<std::string> value = find(name))
    return *value;
  throw std::logic_error("no value and no default: " + std::string(name));
}

// checkValue (for defaults: a unit test) made sure that these can be read.
bool Options::boolean(std::string_view name) const {
  return readBoolean(text(name)).value();
}

int64_t Options::integer(std::string_view name) const {
  return readInteger(text(name)).value();
}

double Options::real(std::string_view name) const {
  return readReal(text(name)).value();
}

std::vector<std::string> Options::list(std::string_view name) const {
  return splitList(text(name));
}

void Options::set(std::string_view name, std::string value) {
  given.insert_or_assign(std::string(name), std::move(value));
}

} // namespace fsdpq::run
