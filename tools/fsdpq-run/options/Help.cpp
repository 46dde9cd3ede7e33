#include "tools/fsdpq-run/options/CommandLine.h"

#include <sstream>

namespace fsdpq::run {
namespace {

constexpr size_t lineWidth = 80, textColumn = 6;

/// Appends `text` with line breaks between words, indented.
void appendWrapped(std::string &out, std::string_view text) {
  std::istringstream words{std::string(text)};
  size_t column = 0;
  for (std::string word; words >> word;) {
    if (column == 0 || column + 1 + word.size() > lineWidth) {
      out += column == 0 ? "" : "\n";
      out += std::string(textColumn, ' ') + word;
      column = textColumn + word.size();
    } else {
      out += " " + word;
      column += 1 + word.size();
    }
  }
  out += "\n";
}

std::string_view placeholder(const OptionSpec &option) {
  switch (option.kind) {
  case ValueKind::Bool:
    return "[true|false]";
  case ValueKind::Int:
    return "N";
  case ValueKind::Real:
    return "X";
  case ValueKind::Text:
    return "TEXT";
  case ValueKind::Choice:
    return option.choices;
  case ValueKind::List:
    return option.choices.empty() ? "NAME,..." : option.choices;
  }
  return "";
}

void appendOption(std::string &out, const OptionSpec &option) {
  out += "  --" + std::string(option.name);
  if (!option.alias.empty())
    out += ", --" + std::string(option.alias);
  out += " " + std::string(placeholder(option)) + "\n";
  std::string text(option.help);
  if (option.optionClass == OptionClass::Moot)
    text = "no effect: " + text;
  else if (!option.byDefault.empty())
    text += " [" + std::string(option.byDefault) + "]";
  appendWrapped(out, text);
}

template <typename Action> void forEachGroup(Action action) {
  std::string_view previous;
  for (const OptionSpec &option : optionTable()) {
    if (option.group != previous)
      action(option.group);
    previous = option.group;
  }
}

std::string spacedChoices(std::string_view choices) {
  std::string text;
  forEachChoice(choices, [&](std::string_view choice) {
    text += (text.empty() ? "" : ", ") + std::string(choice);
  });
  return text;
}

std::string_view className(OptionClass optionClass) {
  switch (optionClass) {
  case OptionClass::Honoured:
    return "honoured";
  case OptionClass::Moot:
    return "moot";
  case OptionClass::NotYet:
    return "not yet";
  }
  return "";
}

} // namespace

std::string helpText(Command command) {
  std::string out = "usage: fsdpq-run [COMMAND] [--option VALUE]...\n\n";
  for (const CommandSpec &spec : commandTable()) {
    std::string name(spec.name);
    name.resize(10, ' ');
    out += "  " + name + std::string(spec.help) + "\n";
  }
  out += "\nBooleans may stand alone or be turned off with --no-NAME; hyphens "
         "and\nunderscores are the same. Defaults stand in brackets. "
         "fsdpq-run COMMAND --help\nshows the options of a command.\n";
  std::string later;
  forEachGroup([&](std::string_view group) {
    std::string section;
    for (const OptionSpec &option : optionTable()) {
      if (option.group != group || !(option.commands & command))
        continue;
      if (option.optionClass == OptionClass::NotYet)
        later += (later.empty() ? "" : ", ") + std::string(option.name);
      else
        appendOption(section, option);
    }
    if (!section.empty())
      out += "\n" + std::string(group) + "\n" + section;
  });
  if (!later.empty()) {
    out += "\nNot there yet (refused)\n";
    appendWrapped(out, later);
  }
  return out;
}

std::string optionsMarkdown() {
  std::string out = "| option | default | class | |\n|---|---|---|---|\n";
  for (const OptionSpec &option : optionTable()) {
    out += "| `--" + std::string(option.name) + "`";
    if (!option.alias.empty())
      out += ", `--" + std::string(option.alias) + "`";
    out += " | ";
    if (!option.byDefault.empty())
      out += "`" + std::string(option.byDefault) + "`";
    out += " | " + std::string(className(option.optionClass)) + " | " +
           std::string(option.help);
    if (option.kind == ValueKind::Choice || !option.laterChoices.empty())
      out += ": " + spacedChoices(option.choices);
    if (!option.laterChoices.empty())
      out += " (not yet: " + spacedChoices(option.laterChoices) + ")";
    out += " |\n";
  }
  return out;
}

} // namespace fsdpq::run
