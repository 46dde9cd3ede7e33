#include "tools/fsdpq-run/options/Values.h"

#include "runtime/support/Error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

static std::string lowerCase(std::string_view text) {
  std::string lower(text);
  for (char &c : lower)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::optional<bool> readBoolean(std::string_view text) {
  const std::string word = lowerCase(text);
  if (word == "true" || word == "yes" || word == "1")
    return true;
  if (word == "false" || word == "no" || word == "0")
    return false;
  return std::nullopt;
}

template <typename Number>
static std::optional<Number> readWhole(std::string_view text) {
  Number value;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<int64_t> readInteger(std::string_view text) {
  return readWhole<int64_t>(text);
}

std::optional<double> readReal(std::string_view text) {
  const std::optional<double> value = readWhole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<int64_t> readBytes(std::string_view text) {
  const size_t end = text.find_first_not_of("0123456789.");
  const std::optional<double> number = readReal(text.substr(0, end));
  std::string unit(end == std::string_view::npos ? "" : text.substr(end));
  unit.erase(0, unit.find_first_not_of(' '));
  unit = lowerCase(unit);
  constexpr std::string_view prefixes = "kmgt";
  double factor = 1;
  if (const size_t power =
          unit.empty() ? std::string_view::npos : prefixes.find(unit.front());
      power != std::string_view::npos) {
    const std::string rest = unit.substr(1);
    if (rest != "ib" && rest != "b")
      return std::nullopt;
    factor = std::pow(rest == "ib" ? 1024 : 1000, power + 1);
  } else if (!unit.empty() && unit != "b") {
    return std::nullopt;
  }
  constexpr double most = 4e18;
  if (!number || *number * factor < 1 || *number * factor > most)
    return std::nullopt;
  return static_cast<int64_t>(*number * factor);
}

std::optional<double> readPercentage(std::string_view text) {
  if (!text.ends_with('%'))
    return std::nullopt;
  const std::optional<double> value = readReal(text.substr(0, text.size() - 1));
  return value && *value > 0 && *value <= 100 ? std::optional(*value / 100)
                                              : std::nullopt;
}

std::string numberText(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::vector<std::string> splitList(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    const size_t first = part.find_first_not_of(" \t");
    const size_t last = part.find_last_not_of(" \t");
    parts.emplace_back(first == std::string_view::npos
                           ? ""
                           : part.substr(first, last - first + 1));
    if (comma == std::string_view::npos)
      return parts;
    text.remove_prefix(comma + 1);
  }
}

bool isChoice(std::string_view choices, std::string_view word) {
  bool found = false;
  forEachChoice(choices, [&](std::string_view choice) {
    found |= choice == word;
  });
  return found;
}

namespace {

[[noreturn]] void failValue(const OptionSpec &option, const std::string &value,
                            const std::string &expected) {
  throw Error(6005, ExitCode::BadInput,
              "--" + std::string(option.name) + " cannot be \"" + value + "\"",
              "", "expected " + expected);
}

std::string rangeText(const OptionSpec &option) {
  const std::string kind =
      option.kind == ValueKind::Int ? "a whole number" : "a number";
  if (!std::isfinite(option.min) || !std::isfinite(option.max))
    return kind;
  if (option.min == option.max)
    return numberText(option.min);
  return kind + " from " + numberText(option.min) + " to " + numberText(option.max);
}

void checkNumber(const OptionSpec &option, const std::string &value) {
  const std::optional<double> number = readReal(value);
  if (option.kind == ValueKind::Int && !readInteger(value)) {
    // "1e3" is a number, but too easily a slip where a count is meant.
    const bool isWhole = number && *number == std::trunc(*number) &&
                         std::abs(*number) < 1e15;
    failValue(option, value,
              rangeText(option) +
                  (isWhole ? ", written as " +
                                 std::to_string(static_cast<int64_t>(*number))
                           : ""));
  }
  if (!number || *number < option.min || *number > option.max)
    failValue(option, value, rangeText(option));
}

void checkChoice(const OptionSpec &option, const std::string &value) {
  if (isChoice(option.choices, value))
    return;
  if (isChoice(option.laterChoices, value))
    throw Error(6007, ExitCode::BadInput,
                "--" + std::string(option.name) + " " + value +
                    " is not there yet",
                "", "possible now: " + std::string(option.choices));
  std::vector<std::string_view> known;
  forEachChoice(option.choices,
                [&](std::string_view choice) { known.push_back(choice); });
  const std::string_view near = nearest(value, known);
  failValue(option, value,
            "one of " + std::string(option.choices) +
                (near.empty() ? ""
                              : "; did you mean " + std::string(near) + "?"));
}

} // namespace

std::string checkValue(const OptionSpec &option, const std::string &value) {
  switch (option.kind) {
  case ValueKind::Bool: {
    const std::optional<bool> flag = readBoolean(value);
    if (!flag)
      failValue(option, value, "true or false");
    return *flag ? "true" : "false";
  }
  case ValueKind::Int:
  case ValueKind::Real:
    checkNumber(option, value);
    return value;
  case ValueKind::Text:
    if (value.empty())
      failValue(option, value, "a value");
    return value;
  case ValueKind::Choice:
    checkChoice(option, value);
    return value;
  case ValueKind::List:
    for (const std::string &part : splitList(value)) {
      if (part.empty())
        failValue(option, value, "words separated by single commas");
      if (!option.choices.empty())
        checkChoice(option, part);
    }
    return value;
  }
  return value;
}

/// How many letters were added, dropped, replaced or exchanged with the next
/// (Damerau and Levenshtein; no letter is edited twice).
static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> beforeLast, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min(
          {row[j] + 1, last[j + 1] + 1, last[j] + (a[i] != b[j])});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], beforeLast[j - 1] + 1);
    }
    beforeLast = last;
    last.swap(row);
  }
  return last.back();
}

std::string_view nearest(std::string_view word,
                         const std::vector<std::string_view> &names) {
  constexpr size_t longestName = 64;
  if (word.empty() || word.size() > longestName)
    return "";
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::string_view result;
  for (std::string_view name : names) {
    // What was left out at the end is the commonest slip.
    const size_t distance = word.size() >= 3 && name.starts_with(word)
                                ? 1
                                : editDistance(word, name);
    if (distance < best) {
      best = distance;
      result = name;
    }
  }
  return result;
}

} // namespace fsdpq::run
