#include "runtime/plan/MemoryTable.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace fsdpq::rt {

namespace {

/// Bytes [begin, end) of an arena that belong to part `part`.
struct Range {
  uint64_t begin, end;
  uint32_t part;
};

/// The parts of one arena while they are collected.
struct Collection {
  std::map<std::string, uint32_t> numbers;
  std::vector<MemoryTable::Part> parts;
  std::vector<Range> ranges;

  void add(const std::string &name, uint64_t begin, uint64_t bytes) {
    auto [entry, isNew] =
        numbers.try_emplace(name, static_cast<uint32_t>(parts.size()));
    if (isNew)
      parts.push_back({name, 0});
    ranges.push_back({begin, begin + bytes, entry->second});
  }

  /// Counts each byte once, for the range that starts first.
  std::vector<MemoryTable::Part> sum(uint64_t arenaBytes) {
    if (parts.empty())
      return {};
    std::stable_sort(
        ranges.begin(), ranges.end(),
        [](const Range &a, const Range &b) { return a.begin < b.begin; });
    uint64_t covered = 0, end = 0;
    for (const Range &range : ranges) {
      const uint64_t begin = std::max(range.begin, end);
      if (begin >= range.end)
        continue;
      parts[range.part].bytes += range.end - begin;
      covered += range.end - begin;
      end = range.end;
    }
    parts.push_back({"other", arenaBytes - covered});
    return std::move(parts);
  }
};

uint64_t shiftAt(const plan::Slice &slice, uint32_t index) {
  if (slice.table() && slice.table()->size() > 0)
    return slice.table()->Get(index);
  return static_cast<uint64_t>(slice.stride()) * index;
}

std::string partName(const plan::Component &component) {
  std::string name = component.name()->str();
  if (name == "data")
    name += " " + component.dtype()->str();
  return name;
}

/// 1234567 -> "1,234,567".
std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

} // namespace

MemoryTable buildMemoryTable(const plan::Plan &plan) {
  std::vector<Collection> collections(plan.arenas()->size());
  for (const plan::Parameter *parameter : *plan.parameters()) {
    const uint32_t ordinals =
        parameter->layers() ? std::max(parameter->layers()->size(), 1u) : 1;
    for (const plan::Component *component : *parameter->components()) {
      const plan::Slice &slice = *plan.slices()->Get(component->slice());
      for (uint32_t ordinal = 0; ordinal < ordinals; ++ordinal)
        collections[slice.arena()].add(partName(*component),
                                       slice.offset() + shiftAt(slice, ordinal),
                                       slice.bytes());
    }
  }

  MemoryTable table;
  for (uint32_t i = 0; i < plan.arenas()->size(); ++i) {
    const plan::Arena &arena = *plan.arenas()->Get(i);
    table.arenas.push_back({arena.name()->str(), arena.bytes(),
                            collections[i].sum(arena.bytes())});
    table.total += arena.bytes();
  }
  return table;
}

std::string formatBytes(uint64_t bytes) {
  static constexpr const char *units[] = {"KiB", "MiB", "GiB",
                                          "TiB", "PiB", "EiB"};
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  unsigned unit = 0;
  for (; value >= 1024; ++unit)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", value < 10 ? 2 : 1, value,
                units[unit]);
  return text;
}

std::string MemoryTable::text() const {
  std::string result;
  auto line = [&](const std::string &name, uint64_t bytes) {
    char text[160];
    std::snprintf(text, sizeof text, "%-28.64s %12s %20s\n", name.c_str(),
                  formatBytes(bytes).c_str(), grouped(bytes).c_str());
    result += text;
  };
  for (const Arena &arena : arenas) {
    line(arena.name, arena.bytes);
    for (const Part &part : arena.parts)
      if (part.bytes > 0)
        line("  " + part.name, part.bytes);
  }
  line("total", total);
  return result;
}

} // namespace fsdpq::rt
