#include "tools/fsdpq-run/ranks/LinePrefixer.h"

namespace fsdpq::run {

std::string LinePrefixer::add(std::string_view bytes) {
  constexpr size_t longest = size_t(64) << 10;
  std::string lines;
  rest += bytes;
  size_t start = 0;
  for (;;) {
    const size_t end = rest.find('\n', start);
    const bool isTooLong =
        (end == std::string::npos ? rest.size() : end) - start > longest;
    if (end == std::string::npos && !isTooLong)
      break;
    const size_t length = isTooLong ? longest : end - start;
    lines += prefix + rest.substr(start, length) + "\n";
    start += length + (isTooLong ? 0 : 1);
  }
  rest.erase(0, start);
  return lines;
}

std::string LinePrefixer::finish() {
  if (rest.empty())
    return "";
  std::string line = prefix + rest + "\n";
  rest.clear();
  return line;
}

} // namespace fsdpq::run
