#include "tools/fsdpq-run/Console.h"

#include "runtime/support/Error.h"

#include <cstdio>

namespace fsdpq::run {

static bool silent = false;

void beSilent() { silent = true; }
bool isSilent() { return silent; }

void note(const std::string &text) {
  if (silent)
    return;
  std::fprintf(stderr, "note: %s\n", text.c_str());
}

void printResult(const std::string &text) {
  if (silent)
    return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
      std::fflush(stdout) != 0)
    throw rt::systemError("writing", "standard output");
}

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  const int64_t first = value < 0 ? 1 : 0;
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > first;
       at -= 3)
    digits.insert(digits.begin() + at, ',');
  return digits;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

} // namespace fsdpq::run
