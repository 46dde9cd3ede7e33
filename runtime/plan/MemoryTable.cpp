#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/Mesh.h"

#include <cstdio>
#include <map>

namespace fsdpq::rt {

namespace {

/// The parts of one arena while they are collected.
struct Collection {
  std::map<std::string, uint32_t> numbers;
  std::vector<MemoryTable::Part> parts;
  uint64_t unitBytes = 0;

  void add(const std::string &name, uint64_t bytes) {
    auto [entry, isNew] =
        numbers.try_emplace(name, static_cast<uint32_t>(parts.size()));
    if (isNew)
      parts.push_back({name, 0});
    parts[entry->second].bytes += bytes;
  }

  /// Makes what all ranks hold the share of one of them.
  std::vector<MemoryTable::Part> share(uint64_t shards, uint64_t arenaBytes) {
    uint64_t shared = 0;
    for (MemoryTable::Part &part : parts)
      shared += part.bytes /= shards;
    parts.push_back({"padding", unitBytes - shared});
    parts.push_back({"other", arenaBytes - unitBytes});
    return std::move(parts);
  }
};

std::vector<MemoryTable::Part> contentsOf(const plan::Arena &arena) {
  std::vector<MemoryTable::Part> parts;
  uint64_t rest = arena.bytes();
  for (const plan::Content *content : *arena.contents()) {
    parts.push_back({content->name()->str(), content->bytes()});
    rest -= content->bytes();
  }
  parts.push_back({"other", rest});
  return parts;
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
  auto collectionOf = [&](const plan::Unit &unit) -> Collection & {
    return collections[plan.slices()->Get(unit.range())->arena()];
  };
  for (const plan::Unit *unit : *plan.units())
    collectionOf(*unit).unitBytes +=
        unit->bytes() / plan.mesh()->shards() * ordinalCount(*unit);
  for (const plan::Parameter *parameter : *plan.parameters()) {
    const plan::Unit &unit = *plan.units()->Get(parameter->unit());
    for (const plan::Component *component : *parameter->components()) {
      const int64_t size = *elementBytes(component->dtype()->string_view());
      collectionOf(unit).add(partName(*component),
                             component->elements() *
                                 static_cast<uint64_t>(size) *
                                 ordinalCount(unit));
    }
  }

  MemoryTable table;
  for (uint32_t i = 0; i < plan.arenas()->size(); ++i) {
    const plan::Arena &arena = *plan.arenas()->Get(i);
    table.arenas.push_back({arena.name()->str(), arena.bytes(), {}});
    if (arena.contents() && arena.contents()->size() > 0)
      table.arenas.back().parts = contentsOf(arena);
    else if (collections[i].unitBytes > 0)
      table.arenas.back().parts =
          collections[i].share(plan.mesh()->shards(), arena.bytes());
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
