#include "runtime/observe/HostMemory.h"

#include <fstream>
#include <string>

namespace fsdpq::rt {

/// The value of "<key>:   <n> kB" in /proc/self/status, in bytes.
static uint64_t statusField(const char *key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == key) {
      uint64_t kibibytes = 0;
      status >> kibibytes;
      return status ? kibibytes * 1024 : 0;
    }
  return 0;
}

uint64_t residentHostMemory() { return statusField("VmRSS:"); }

uint64_t peakHostMemory() { return statusField("VmHWM:"); }

void resetPeakHostMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }

} // namespace fsdpq::rt
