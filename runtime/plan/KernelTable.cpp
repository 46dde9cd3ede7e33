#include "runtime/plan/KernelTable.h"

#include <algorithm>
#include <array>
#include <vector>

namespace fsdpq::rt {

namespace {

constexpr size_t columns = 7, textColumns = 2; // which are on the left
using Row = std::array<std::string, columns>;

Row rowOf(const plan::Kernel &kernel) {
  const plan::LaunchShape *launch = kernel.launch();
  const plan::KernelResources *resources = kernel.resources();
  Row row = {kernel.name()->str(), kernel.symbol()->str()};
  row[2] = launch ? std::to_string(launch->threads()) : "-";
  row[3] = resources ? std::to_string(resources->registers()) : "-";
  row[4] = resources ? std::to_string(resources->spill_bytes()) : "-";
  row[5] = launch && resources
               ? std::to_string(uint64_t(launch->shared_bytes()) +
                                resources->static_shared_bytes())
               : "-";
  row[6] = std::to_string(kernel.code() ? kernel.code()->size() : 0);
  return row;
}

} // namespace

std::string kernelTable(const plan::Plan &plan) {
  std::vector<Row> rows = {
      {"kernel", "entry", "threads", "registers", "spilled", "shared", "code"}};
  for (const plan::Kernel *kernel : *plan.kernels())
    rows.push_back(rowOf(*kernel));
  std::array<size_t, columns> widths = {};
  for (const Row &row : rows)
    for (size_t i = 0; i < columns; ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row &row : rows) {
    for (size_t i = 0; i < columns; ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      text += (i ? "  " : "") +
              (i < textColumns ? row[i] + space : space + row[i]);
    }
    text += "\n";
  }
  return text;
}

} // namespace fsdpq::rt
