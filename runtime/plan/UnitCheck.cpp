#include "runtime/plan/CheckContext.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/Mesh.h"

#include <algorithm>

namespace fsdpq::rt {

namespace {

constexpr uint32_t maxComponents = 16;
/// Ranges start at multiples of this in their unit.
constexpr uint64_t rangeAlignment = 256;

/// Bytes [begin, end) of something, and whose they are.
struct Interval {
  uint64_t begin, end;
  std::string owner;
};

/// Two neighbours of `intervals` that share bytes, or null. Sorts.
const Interval *findOverlap(std::vector<Interval> &intervals) {
  std::sort(
      intervals.begin(), intervals.end(),
      [](const Interval &a, const Interval &b) { return a.begin < b.begin; });
  for (size_t i = 1; i < intervals.size(); ++i)
    if (intervals[i].begin < intervals[i - 1].end)
      return &intervals[i - 1];
  return nullptr;
}

class UnitChecker {
public:
  explicit UnitChecker(CheckContext &context)
      : context(context), plan(context.plan), components(plan.units()->size()),
        ranges(plan.arenas()->size()) {}

  void check() {
    if (plan.staging() != -1)
      context.checkSliceUse(toIndex(plan.staging()), "the staging buffer", {0});
    for (const plan::Unit *unit : *plan.units()) {
      context.subject = "unit " + quoted(unit->name());
      checkUnit(*unit);
    }
    context.subject.clear();
    for (std::vector<Interval> &inArena : ranges)
      if (const Interval *first = findOverlap(inArena))
        fail(3023, "the ranges of units '" + first[0].owner + "' and '" +
                       first[1].owner + "' overlap");
    for (const plan::Parameter *parameter : *plan.parameters()) {
      context.subject = "parameter " + quoted(parameter->name());
      checkParameter(*parameter);
    }
    for (uint32_t unit = 0; unit < components.size(); ++unit) {
      context.subject = "unit " + quoted(plan.units()->Get(unit)->name());
      if (const Interval *first = findOverlap(components[unit]))
        fail(3020, first[0].owner + " and " + first[1].owner + " overlap");
    }
    context.subject.clear();
  }

private:
  [[noreturn]] void fail(int id, const std::string &message) const {
    context.fail(id, message);
  }

  //===--- Units ------------------------------------------------------------//

  void checkUnit(const plan::Unit &unit) {
    const uint64_t shards = plan.mesh()->shards();
    if (unit.bytes() == 0 || unit.bytes() % (shards * rangeAlignment) != 0)
      fail(3023, "its " + std::to_string(unit.bytes()) +
                     " bytes are not a multiple of " +
                     std::to_string(shards * rangeAlignment));
    checkLayers(unit);
    checkRange(unit.range(), unit, "its range");
    if (unit.gradient() != -1)
      checkRange(toIndex(unit.gradient()), unit, "its gradient");
    const plan::Slice &range = *plan.slices()->Get(unit.range());
    for (uint32_t ordinal = 0; ordinal < ordinalCount(unit); ++ordinal) {
      const uint64_t begin = offsetAt(range, ordinal);
      ranges[range.arena()].push_back(
          {begin, begin + range.bytes(), unit.name()->str()});
    }

    if ((unit.begin_function() == -1) != (unit.store_function() == -1))
      fail(3023, "it has one of begin and store function, expected both or "
                 "neither");
    if (unit.begin_function() == -1)
      return;
    checkFunction(unit.begin_function(), "its begin function", 1);
    checkFunction(unit.store_function(), "its store function",
                  ordinalCount(unit));
  }

  void checkLayers(const plan::Unit &unit) {
    if (!unit.layers())
      return;
    context.spend(uint64_t(unit.layers()->size()) * sizeof(int32_t));
    context.checkAlignment(*unit.layers());
    std::set<int32_t> seen;
    for (int32_t layer : *unit.layers())
      if (layer < 0 || !seen.insert(layer).second)
        fail(3023, "layer " + std::to_string(layer) +
                       (layer < 0 ? " is negative" : " stands twice"));
  }

  void checkRange(uint32_t number, const plan::Unit &unit,
                  const std::string &role) const {
    const plan::Slice &slice =
        context.checkSliceUse(number, role, {ordinalCount(unit)});
    const uint64_t expected = unit.bytes() / plan.mesh()->shards();
    if (slice.bytes() != expected)
      fail(3023, role + " is slice " + quoted(slice.name()) + " of " +
                     std::to_string(slice.bytes()) + " bytes, expected " +
                     std::to_string(expected));
  }

  /// A function that is called with indices below `calls`, of which it must
  /// take all and, where it is called once, no more.
  void checkFunction(int32_t number, const std::string &role,
                     int64_t calls) const {
    if (toIndex(number) >= plan.functions()->size())
      fail(3011, role + " is number " + std::to_string(number) + " of " +
                     std::to_string(plan.functions()->size()));
    const plan::Function &function = *plan.functions()->Get(toIndex(number));
    const int64_t taken = std::max<int64_t>(function.index_count(), 1);
    if (taken < calls || (calls == 1 && taken > 1))
      fail(3023, role + " " + quoted(function.name()) + " takes " +
                     std::to_string(function.index_count()) +
                     " indices, expected " + std::to_string(calls));
  }

  //===--- Parameters -------------------------------------------------------//

  void checkParameter(const plan::Parameter &parameter) {
    if (parameter.unit() >= plan.units()->size())
      fail(3011, "it names unit " + std::to_string(parameter.unit()) + " of " +
                     std::to_string(plan.units()->size()));
    const plan::Unit &unit = *plan.units()->Get(parameter.unit());
    const Wide elements = checkShape(parameter);
    checkComponents(parameter, unit);
    if (parameter.loader())
      checkLoader(*parameter.loader(), elements);

    switch (parameter.init()) {
    case plan::Init::Checkpoint:
      if (!parameter.loader())
        fail(3020, "it comes from a checkpoint, but has no loader");
      if (unit.begin_function() == -1)
        fail(3020, "it comes from a checkpoint, but its unit " +
                       quoted(unit.name()) + " has no begin function");
      return;
    case plan::Init::Zeros:
      return;
    case plan::Init::KaimingUniform:
      if (parameter.fan_in() <= 0)
        fail(3020, "its fan-in is " + std::to_string(parameter.fan_in()));
      return;
    }
    fail(3011, "initialisation " + std::to_string(int(parameter.init())) +
                   " is unknown");
  }

  /// Returns the number of elements, at most 2^62.
  Wide checkShape(const plan::Parameter &parameter) const {
    const auto &shape = *parameter.shape();
    if (shape.size() == 0 || shape.size() > 8)
      fail(3020,
           "its rank is " + std::to_string(shape.size()) + ", expected 1 to 8");
    context.checkAlignment(shape);
    Wide elements = 1;
    for (int64_t dimension : shape) {
      if (dimension <= 0)
        fail(3020, "a dimension is " + std::to_string(dimension));
      elements *= dimension;
      if (elements > (Wide(1) << 62))
        fail(3020, "its shape overflows");
    }
    const int64_t heads = parameter.gguf_rope_heads();
    if (heads < 0 || (heads > 0 && shape.Get(0) % heads != 0))
      fail(3020, std::to_string(heads) + " heads do not divide its " +
                     std::to_string(shape.Get(0)) + " rows");
    return elements;
  }

  void checkComponents(const plan::Parameter &parameter,
                       const plan::Unit &unit) {
    if (parameter.components()->size() == 0 ||
        parameter.components()->size() > maxComponents)
      fail(3020, "it has " + std::to_string(parameter.components()->size()) +
                     " components, expected 1 to " +
                     std::to_string(maxComponents));
    context.checkNames(
        *parameter.components(), "component", true,
        [](const auto &c) -> const auto & { return *c.name(); });
    for (const plan::Component *component : *parameter.components()) {
      const std::string role = "component " + quoted(component->name());
      const std::optional<int64_t> size =
          elementBytes(component->dtype()->string_view());
      if (!size)
        fail(3011, role + ": element type " + quoted(component->dtype()) +
                       " is unknown");
      if (component->elements() == 0 ||
          Wide(component->offset()) + Wide(component->elements()) * *size >
              Wide(unit.bytes()))
        fail(3020, role + " of " + std::to_string(component->elements()) +
                       " elements at " + std::to_string(component->offset()) +
                       " is not inside unit " + quoted(unit.name()) + " of " +
                       std::to_string(unit.bytes()) + " bytes");
      if (component->offset() % static_cast<uint64_t>(*size) != 0)
        fail(3020, role + " is not aligned to its elements");
      components[parameter.unit()].push_back(
          {component->offset(),
           component->offset() +
               component->elements() * static_cast<uint64_t>(*size),
           "component '" + parameter.name()->str() + "." +
               component->name()->str() + "'"});
    }
  }

  void checkLoader(const plan::Loader &loader, Wide elements) const {
    if (loader.pieces() <= 0 || elements % loader.pieces() != 0)
      fail(3020, "its " + std::to_string(static_cast<int64_t>(elements)) +
                     " elements do not make " +
                     std::to_string(loader.pieces()) + " pieces");
    if (plan.staging() == -1)
      fail(3020, "it has a loader, but the plan has no staging buffer");
    const plan::Slice &staging = *plan.slices()->Get(toIndex(plan.staging()));
    const Wide pieceBytes = elements / loader.pieces() * 4;
    if (pieceBytes > Wide(staging.bytes()))
      fail(3020, "a piece does not fit the staging buffer of " +
                     std::to_string(staging.bytes()) + " bytes");

    if (loader.piece_function() >= plan.functions()->size())
      fail(3011, "its piece function is number " +
                     std::to_string(loader.piece_function()) + " of " +
                     std::to_string(plan.functions()->size()));
    checkFunction(static_cast<int32_t>(loader.piece_function()),
                  "its piece function", loader.pieces());
    const bool hasScales = loader.mean_function() != -1;
    if (hasScales != (loader.scales_function() != -1) ||
        hasScales != (loader.offset_function() != -1))
      fail(3020, "it has some of mean, scales and offset function, expected "
                 "all or none");
    if (!hasScales)
      return;
    checkFunction(loader.mean_function(), "its mean function", 1);
    checkFunction(loader.scales_function(), "its scales function",
                  loader.pieces());
    checkFunction(loader.offset_function(), "its offset function", 1);
  }

  CheckContext &context;
  const plan::Plan &plan;
  std::vector<std::vector<Interval>> components; ///< of each unit
  std::vector<std::vector<Interval>> ranges;     ///< in each arena
};

} // namespace

void checkUnits(CheckContext &context) { UnitChecker(context).check(); }

} // namespace fsdpq::rt
