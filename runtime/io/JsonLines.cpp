#include "runtime/io/JsonLines.h"
#include "runtime/io/Json.h"

#include <string_view>

namespace fsdpq::rt {

bool JsonLines::next(nlohmann::json &value) {
  std::string_view text(reinterpret_cast<const char *>(file.data()),
                        file.size());
  while (position < text.size()) {
    size_t end = text.find('\n', position);
    std::string_view current = text.substr(position, end - position);
    position = end == std::string_view::npos ? text.size() : end + 1;
    ++number;
    if (current.find_first_not_of(" \t\r") == std::string_view::npos)
      continue;
    value = parseJson(current, place());
    return true;
  }
  return false;
}

std::string JsonLines::place() const {
  return file.path() + ":" + std::to_string(number);
}

} // namespace fsdpq::rt
