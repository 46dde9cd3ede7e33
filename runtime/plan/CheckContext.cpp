#include "runtime/plan/CheckContext.h"
#include "runtime/support/Error.h"

namespace fsdpq::rt {

void CheckContext::fail(int id, const std::string &message) const {
  throw Error(id, ExitCode::BadInput,
              subject.empty() ? message : subject + ": " + message, where,
              "make the plan again with this version's compiler");
}

void CheckContext::spend(uint64_t bytes) {
  if (bytes > sharedBudget)
    fail(3022, "tables share storage");
  sharedBudget -= bytes;
}

void CheckContext::checkName(std::string_view name,
                             const std::string &what) const {
  if (name.empty() || name.size() > 1024)
    fail(3010, what + " has a name of " + std::to_string(name.size()) +
                   " bytes, expected 1 to 1024");
  for (unsigned char c : name)
    if (c < 0x20 || c == 0x7f)
      fail(3010, what + " has a control character in its name");
}

std::string CheckContext::sliceText(uint32_t number) const {
  return "slice " + std::to_string(number) + " " +
         quoted(plan.slices()->Get(number)->name());
}

void CheckContext::checkInArena(const plan::Slice &slice, Wide shift,
                                int64_t index) const {
  const plan::Arena &arena = *plan.arenas()->Get(slice.arena());
  const Wide begin = Wide(slice.offset()) + shift;
  if (begin < 0 || begin + slice.bytes() > arena.bytes())
    fail(3012, "slice " + quoted(slice.name()) + " (" +
                   std::to_string(slice.bytes()) + " bytes) leaves arena " +
                   quoted(arena.name()) + " of " +
                   std::to_string(arena.bytes()) + " bytes at index " +
                   std::to_string(index));
}

/// The number of values of the index at `level`, which must exist here.
int64_t CheckContext::indexCount(uint32_t level, const IndexCounts &counts,
                                 const std::string &user) const {
  if (level == 0 && (counts.empty() || counts[0] == 0))
    fail(3013, user + " uses an index argument, which is not there");
  if (level >= counts.size())
    fail(3013, user + " uses the index of loop " + std::to_string(level) +
                   ", but only " + std::to_string(counts.size() - 1) +
                   " are around it");
  return counts[level];
}

const plan::Slice &
CheckContext::checkSliceUse(uint32_t number, const std::string &role,
                            const IndexCounts &counts) const {
  if (number >= plan.slices()->size())
    fail(3011, role + " names slice " + std::to_string(number) + " of " +
                   std::to_string(plan.slices()->size()));
  const plan::Slice &slice = *plan.slices()->Get(number);
  if (!isIndexed(slice))
    return slice;
  const std::string user = role + " (" + sliceText(number) + ")";
  const int64_t count = indexCount(slice.level(), counts, user);
  auto checkEntries = [&](int64_t entries, const std::string &what) {
    if (entries < count)
      fail(3012, user + " has " + what + " of " + std::to_string(entries) +
                     " for an index that takes " + std::to_string(count) +
                     " values");
  };
  if (slice.table() && slice.table()->size() > 0)
    checkEntries(slice.table()->size(), "a table");
  else
    checkInArena(slice, Wide(slice.stride()) * std::max<int64_t>(count - 1, 0),
                 count - 1);
  if (slice.ordinals() && slice.ordinals()->size() > 1)
    checkEntries(slice.ordinals()->size(), "ordinals");
  return slice;
}

ExtentRange CheckContext::checkExtent(const plan::Extent &extent,
                                      const std::string &role,
                                      const IndexCounts &counts) const {
  if (extent.scalar() < -1 ||
      extent.scalar() >= int64_t(plan.scalars()->size()))
    fail(3011, role + " names scalar " + std::to_string(extent.scalar()) +
                   " of " + std::to_string(plan.scalars()->size()));
  if (extent.scalar() >= 0 &&
      plan.scalars()->Get(extent.scalar())->kind() != plan::ScalarKind::I64)
    fail(3015, role + " reads the floating-point scalar " +
                   quoted(plan.scalars()->Get(extent.scalar())->name()));
  if (extent.div() <= 0)
    fail(3015, role + " is divided by " + std::to_string(extent.div()));
  if (extent.cap() < 0)
    fail(3015, role + " is capped at " + std::to_string(extent.cap()));
  int64_t indices = 1;
  if (extent.index_mul() != 0)
    indices = indexCount(extent.level(), counts, role);
  std::optional<ExtentRange> range =
      rangeOf(extent, scalarMax(plan, extent), indices);
  if (!range)
    fail(3015, role + " overflows 64 bits");
  return *range;
}

int64_t CheckContext::checkCount(const plan::Extent &extent,
                                 const std::string &role,
                                 const IndexCounts &counts) const {
  ExtentRange range = checkExtent(extent, role, counts);
  if (range.lowestAtCapacity < 0)
    fail(3015, role + " is " + std::to_string(range.lowestAtCapacity) +
                   " at full capacity");
  return range.upper;
}

} // namespace fsdpq::rt
