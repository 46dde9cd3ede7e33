#include "dialects/Support/Remarks.h"

#include "llvm/Support/FormatVariadic.h"

#include "dialects/Support/Remarks.cpp.inc"

std::string fsdpq::formatBytes(int64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  unsigned unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  return unit == 0 ? llvm::formatv("{0} B", bytes).str()
                   : llvm::formatv("{0:f1} {1}", value, units[unit]).str();
}
