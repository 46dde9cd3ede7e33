#include "tools/fsdpq-run/ranks/SlurmLists.h"

#include "runtime/support/Error.h"
#include "tools/fsdpq-run/options/Values.h"

#include <algorithm>

namespace fsdpq::run {

using rt::Error;
using rt::ExitCode;

namespace {

constexpr size_t maxEntries = 65536;

[[noreturn]] void refuse(std::string_view list, const std::string &variable) {
  throw Error(6051, ExitCode::BadInput,
              variable + " is \"" + std::string(list) +
                  "\", which is no list that can be read",
              "the environment", "srun sets it; leave it as it is");
}

bool isDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

/// The texts that "01-03,7" stands for; empty if it cannot be read.
std::vector<std::string> expandNumbers(std::string_view text) {
  std::vector<std::string> numbers;
  for (const std::string &part : splitList(text)) {
    const size_t dash = part.find('-');
    const std::string first = part.substr(0, dash);
    const std::string last =
        dash == std::string::npos ? first : part.substr(dash + 1);
    const auto begin = readInteger(first), end = readInteger(last);
    if (!isDigits(first) || !isDigits(last) || !begin || !end ||
        *begin > *end || *end - *begin >= static_cast<int64_t>(maxEntries))
      return {};
    for (int64_t number = *begin; number <= *end; ++number) {
      std::string digits = std::to_string(number);
      if (digits.size() < first.size()) // the first one gives the width
        digits.insert(0, first.size() - digits.size(), '0');
      numbers.push_back(std::move(digits));
    }
    if (numbers.size() > maxEntries)
      return {};
  }
  return numbers;
}

/// Splits at commas outside of brackets.
std::vector<std::string_view> splitNames(std::string_view list) {
  std::vector<std::string_view> names;
  size_t start = 0;
  bool isInside = false;
  for (size_t at = 0; at <= list.size(); ++at)
    if (at == list.size() || (list[at] == ',' && !isInside)) {
      names.push_back(list.substr(start, at - start));
      start = at + 1;
    } else if (list[at] == '[' || list[at] == ']') {
      isInside = list[at] == '[';
    }
  return names;
}

/// The names that "rack[0-1]n[1-2]" stands for; empty if it cannot be read.
std::vector<std::string> expandName(std::string_view text) {
  std::vector<std::string> names = {""};
  while (!text.empty()) {
    const size_t open = text.find('[');
    const std::string_view literal = text.substr(0, open);
    if (literal.find(']') != std::string_view::npos)
      return {};
    for (std::string &name : names)
      name += literal;
    if (open == std::string_view::npos)
      break;
    const size_t close = text.find(']', open);
    if (close == std::string_view::npos)
      return {};
    const std::vector<std::string> numbers =
        expandNumbers(text.substr(open + 1, close - open - 1));
    if (numbers.size() * names.size() > maxEntries)
      return {};
    std::vector<std::string> longer;
    for (const std::string &name : names)
      for (const std::string &number : numbers)
        longer.push_back(name + number);
    names = std::move(longer);
    text.remove_prefix(close + 1);
  }
  if (!names.empty() && names.front().empty())
    return {};
  return names;
}

} // namespace

std::vector<std::string> expandHostList(std::string_view list,
                                        const std::string &variable) {
  std::vector<std::string> hosts;
  for (std::string_view text : splitNames(list)) {
    std::vector<std::string> names = expandName(text);
    if (names.empty() || hosts.size() + names.size() > maxEntries)
      refuse(list, variable);
    hosts.insert(hosts.end(), names.begin(), names.end());
  }
  return hosts;
}

std::vector<int64_t> expandCounts(std::string_view list,
                                  const std::string &variable) {
  std::vector<int64_t> counts;
  for (const std::string &part : splitList(list)) {
    const size_t open = part.find("(x");
    std::optional<int64_t> times = 1;
    if (open != std::string::npos)
      times = part.ends_with(')') ? readInteger(std::string_view(part).substr(
                                        open + 2, part.size() - open - 3))
                                  : std::nullopt;
    const std::optional<int64_t> count = readInteger(part.substr(0, open));
    if (!count || *count < 1 || !times || *times < 1 ||
        *times > static_cast<int64_t>(maxEntries - counts.size()))
      refuse(list, variable);
    counts.insert(counts.end(), static_cast<size_t>(*times), *count);
  }
  return counts;
}

} // namespace fsdpq::run
