#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/CheckContext.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/Mesh.h"

#include <bit>

namespace fsdpq::rt {

namespace {

constexpr uint64_t maxArenaBytes = uint64_t(1) << 48;
constexpr uint32_t maxRanks = uint32_t(1) << 20;
/// Devices and checks keep something for each.
constexpr uint32_t maxEvents = uint32_t(1) << 16;

class Checker {
public:
  explicit Checker(CheckContext &context)
      : context(context), plan(context.plan) {}

  void check() {
    checkAllNames();
    checkMesh();
    if (plan.events() > maxEvents)
      fail(3025, "the plan has " + std::to_string(plan.events()) +
                     " events, at most " + std::to_string(maxEvents) +
                     " are possible");
    checkScalars();
    checkArenas();
    checkSlices();
    checkKernels(context);
    checkFunctions(context);
    checkPorts(*plan.inputs(), "input");
    checkPorts(*plan.outputs(), "output");
    checkUnits(context);
  }

private:
  [[noreturn]] void fail(int id, const std::string &message) const {
    context.fail(id, message);
  }

  /// What is looked up by name must be unique; slices and kernels are not.
  void checkAllNames() const {
    auto name = [](const auto &table) -> const auto & { return *table.name(); };
    context.checkNames(*plan.scalars(), "scalar", true, name);
    context.checkNames(
        *plan.streams(), "stream", true,
        [](const auto &stream) -> const auto & { return stream; });
    context.checkNames(*plan.arenas(), "arena", true, name);
    context.checkNames(*plan.slices(), "slice", false, name);
    context.checkNames(*plan.kernels(), "kernel", false, name);
    context.checkNames(*plan.functions(), "function", true, name);
    context.checkNames(*plan.inputs(), "input", true, name);
    context.checkNames(*plan.outputs(), "output", true, name);
    context.checkNames(*plan.units(), "unit", true, name);
    context.checkNames(*plan.parameters(), "parameter", true, name);
    if (plan.metadata())
      context.checkNames(
          *plan.metadata(), "metadata key", true,
          [](const auto &entry) -> const auto & { return *entry.key(); });
  }

  void checkMesh() const {
    const plan::Mesh &mesh = *plan.mesh();
    if (mesh.ranks() == 0 || mesh.ranks() > maxRanks)
      fail(3023, "the mesh has " + std::to_string(mesh.ranks()) +
                     " ranks, expected 1 to " + std::to_string(maxRanks));
    if (mesh.shards() == 0 || mesh.ranks() % mesh.shards() != 0)
      fail(3023, std::to_string(mesh.shards()) +
                     " shards do not divide the mesh's " +
                     std::to_string(mesh.ranks()) + " ranks");
  }

  void checkScalars() {
    for (const plan::Scalar *scalar : *plan.scalars()) {
      context.subject = "scalar " + quoted(scalar->name());
      if (scalar->kind() > plan::ScalarKind::MAX)
        fail(3011,
             "kind " + std::to_string(int(scalar->kind())) + " is unknown");
      if (scalar->max() < 0)
        fail(3015, "its maximum is " + std::to_string(scalar->max()) +
                       ", below zero");
    }
    context.subject.clear();
  }

  void checkArenas() {
    for (const plan::Arena *arena : *plan.arenas()) {
      context.subject = "arena " + quoted(arena->name());
      if (arena->bytes() > maxArenaBytes)
        fail(3012, "its " + std::to_string(arena->bytes()) +
                       " bytes are more than an address space");
      if (!arena->contents())
        continue;
      context.checkNames(
          *arena->contents(), "content", true,
          [](const auto &content) -> const auto & { return *content.name(); });
      Wide bytes = 0;
      for (const plan::Content *content : *arena->contents())
        bytes += content->bytes();
      if (bytes > Wide(arena->bytes()))
        fail(3012, "its contents need more than its " +
                       std::to_string(arena->bytes()) + " bytes");
    }
    context.subject.clear();
  }

  /// Every slice at index 0 and, if it has a table, at each entry. Strides are
  /// checked where a use tells the range of the index.
  void checkSlices() {
    for (uint32_t i = 0; i < plan.slices()->size(); ++i) {
      const plan::Slice &slice = *plan.slices()->Get(i);
      context.subject = context.sliceText(i);
      if (slice.arena() >= plan.arenas()->size())
        fail(3011, "it names arena " + std::to_string(slice.arena()) + " of " +
                       std::to_string(plan.arenas()->size()));
      const bool hasTable = slice.table() && slice.table()->size() > 0;
      if (hasTable && slice.stride() != 0)
        fail(3012, "it has both a table and a stride");
      uint64_t shifts = slice.offset() | uint64_t(slice.stride());
      if (hasTable) {
        context.checkAlignment(*slice.table());
        context.spend(uint64_t(slice.table()->size()) * sizeof(uint64_t));
        for (uint32_t entry = 0; entry < slice.table()->size(); ++entry) {
          context.checkInArena(slice, slice.table()->Get(entry), entry);
          shifts |= slice.table()->Get(entry);
        }
      } else {
        context.checkInArena(slice, 0, 0);
      }
      context.alignment.push_back(1 << std::countr_zero(shifts | 256));
      checkOrdinals(slice);
    }
    context.subject.clear();
  }

  /// Which parameters are expected in a slice.
  void checkOrdinals(const plan::Slice &slice) {
    const uint32_t count = slice.ordinals() ? slice.ordinals()->size() : 0;
    if (slice.unit() == -1) {
      if (count > 0)
        fail(3023, "it has ordinals, but no unit");
      return;
    }
    if (toIndex(slice.unit()) >= plan.units()->size())
      fail(3011, "it names unit " + std::to_string(slice.unit()) + " of " +
                     std::to_string(plan.units()->size()));
    const plan::Unit &unit = *plan.units()->Get(toIndex(slice.unit()));
    if (slice.bytes() > unit.bytes())
      fail(3023, "its " + std::to_string(slice.bytes()) +
                     " bytes are more than unit " + quoted(unit.name()) +
                     " has");
    if (count == 0)
      fail(3023, "it has a unit, but no ordinals");
    context.checkAlignment(*slice.ordinals());
    context.spend(uint64_t(count) * sizeof(uint32_t));
    for (uint32_t ordinal : *slice.ordinals())
      if (ordinal >= ordinalCount(unit))
        fail(3011, "it names ordinal " + std::to_string(ordinal) + " of " +
                       std::to_string(ordinalCount(unit)) + " of unit " +
                       quoted(unit.name()));
  }

  template <typename Ports>
  void checkPorts(const Ports &ports, const std::string &what) {
    const IndexCounts noIndex{0};
    for (const plan::Port *port : ports) {
      context.subject = what + " " + quoted(port->name());
      const plan::Slice &slice =
          context.checkSliceUse(port->slice(), "it", noIndex);
      if (port->dtype()->string_view() == "u8" ||
          port->dtype()->string_view() == "bf16")
        fail(3011, "element type " + quoted(port->dtype()) +
                       " is not one of a port");
      const std::optional<int64_t> size =
          elementBytes(port->dtype()->string_view());
      if (!size)
        fail(3011, "element type " + quoted(port->dtype()) + " is unknown");
      const Wide count =
          context.checkCount(*port->extent(), "its size", noIndex);
      if (count > Wide(slice.bytes()) / *size)
        fail(3021, "its elements do not fit slice " + quoted(slice.name()) +
                       " of " + std::to_string(slice.bytes()) + " bytes");
    }
    context.subject.clear();
  }

  CheckContext &context;
  const plan::Plan &plan;
};

} // namespace

void checkPlan(const plan::Plan &plan, size_t bodyBytes,
               const std::string &where) {
  CheckContext context(plan, bodyBytes, where);
  Checker(context).check();
}

} // namespace fsdpq::rt
