#include "tools/fsdpq-run/MachineMemory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace fsdpq::run {

namespace fs = std::filesystem;

/// The group's path below the mount; "" without version 2 of control groups.
static std::string ownGroup(const std::string &membership) {
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::/"))
      return line.substr(4);
  return "";
}

int64_t machineMemory(const std::string &groups,
                      const std::string &membership) {
  int64_t memory =
      static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  // Each group is limited by those that it is in.
  for (fs::path group = ownGroup(membership); !group.empty();
       group = group.parent_path()) {
    std::ifstream file(fs::path(groups) / group / "memory.max");
    int64_t limit; // "max" is no number
    if (file >> limit && limit > 0)
      memory = std::min(memory, limit);
  }
  return memory;
}

} // namespace fsdpq::run
