#include "tools/fsdpq-run/ranks/Environment.h"

#include <cstdlib>

namespace fsdpq::run {

Environment processEnvironment() {
  return [](const std::string &name) -> std::optional<std::string> {
    const char *value = std::getenv(name.c_str());
    if (!value || !*value)
      return std::nullopt;
    return value;
  };
}

} // namespace fsdpq::run
