#include "runtime/plan/Communication.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/InstructionText.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Unroll.h"

#include <cstdio>

namespace fsdpq::rt {

namespace {

/// The slices of a collective.
struct Ends {
  plan::Group group;
  uint32_t source, destination;
};

bool endsOf(const plan::Instruction &instruction, Ends &ends) {
  if (const plan::AllGather *gather = instruction.op_as_AllGather())
    ends = {gather->group(), gather->src(), gather->dst()};
  else if (const plan::ReduceScatter *scatter =
               instruction.op_as_ReduceScatter())
    ends = {scatter->group(), scatter->src(), scatter->dst()};
  else if (const plan::AllReduce *reduce = instruction.op_as_AllReduce())
    ends = {reduce->group(), reduce->data(), reduce->data()};
  else
    return false;
  return true;
}

/// Whether a slice starts in the bytes of `range` of any of `ordinals` layers.
bool isWithin(const plan::Slice &slice, const plan::Slice &range,
              uint32_t ordinals) {
  const uint64_t first =
      slice.offset() +
      (slice.table() && slice.table()->size() > 0 ? slice.table()->Get(0) : 0);
  return slice.arena() == range.arena() && first >= range.offset() &&
         first < range.offset() + ordinals * range.bytes();
}

int32_t unitOf(const plan::Plan &plan, const Ends &ends) {
  for (uint32_t slice : {ends.source, ends.destination})
    if (plan.slices()->Get(slice)->unit() >= 0)
      return plan.slices()->Get(slice)->unit();
  const plan::Slice &to = *plan.slices()->Get(ends.destination);
  for (uint32_t i = 0; i < plan.units()->size(); ++i) {
    const plan::Unit &unit = *plan.units()->Get(i);
    if (isWithin(to, *plan.slices()->Get(unit.range()), ordinalCount(unit)) ||
        (unit.gradient() >= 0 &&
         isWithin(to,
                  *plan.slices()->Get(static_cast<uint32_t>(unit.gradient())),
                  ordinalCount(unit))))
      return static_cast<int32_t>(i);
  }
  return -1;
}

} // namespace

std::string movedName(const plan::Plan &plan,
                      const plan::Instruction &instruction) {
  Ends ends;
  if (!endsOf(instruction, ends))
    return "";
  const int32_t unit = unitOf(plan, ends);
  return unit >= 0 ? plan.units()->Get(static_cast<uint32_t>(unit))->name()->str()
                   : plan.slices()->Get(ends.source)->name()->str();
}

uint64_t trafficBytes(const plan::Plan &plan,
                      const plan::Instruction &instruction) {
  Ends ends;
  if (!endsOf(instruction, ends))
    return 0;
  const uint64_t ranks = groupSize(ends.group, *plan.mesh());
  if (const plan::AllGather *gather = instruction.op_as_AllGather())
    return (ranks - 1) * static_cast<uint64_t>(gather->bytes());
  if (const plan::ReduceScatter *scatter = instruction.op_as_ReduceScatter())
    return (ranks - 1) * static_cast<uint64_t>(scatter->elements() *
                                               elementBytes(scatter->type()));
  const plan::AllReduce &reduce = *instruction.op_as_AllReduce();
  const auto elements = static_cast<uint64_t>(reduce.elements());
  const auto width = static_cast<uint64_t>(elementBytes(reduce.type()));
  if (elements * width <= static_cast<uint64_t>(smallAllReduceBytes))
    return (ranks - 1) * elements * width;
  return 2 * (ranks - 1) * ((elements + ranks - 1) / ranks) * width;
}

std::vector<Traffic> communicationOf(const plan::Plan &plan,
                                     const plan::Function &function) {
  std::vector<Traffic> result;
  unroll(plan, function, 0, [&](const UnrolledInstruction &unrolled) {
    Ends ends;
    if (!endsOf(unrolled.instruction, ends))
      return;
    const plan::Op kind = unrolled.instruction.op_type();
    const int32_t unit = unitOf(plan, ends);
    const uint64_t bytes = trafficBytes(plan, unrolled.instruction);
    for (Traffic &traffic : result)
      if (traffic.kind == kind && traffic.group == ends.group &&
          traffic.unit == unit) {
        ++traffic.calls;
        traffic.bytes += bytes;
        return;
      }
    result.push_back({kind, ends.group, unit, 1, bytes});
  });
  return result;
}

std::string trafficText(const plan::Plan &plan,
                        const std::vector<Traffic> &traffic) {
  std::string result;
  for (const Traffic &entry : traffic) {
    const std::string unit =
        entry.unit < 0 ? "-" : plan.units()->Get(entry.unit)->name()->str();
    char line[256];
    std::snprintf(line, sizeof line, "%-14s %-7s %-28.64s %6llu calls %12s\n",
                  opcodeName(entry.kind), groupName(entry.group), unit.c_str(),
                  static_cast<unsigned long long>(entry.calls),
                  formatBytes(entry.bytes).c_str());
    result += line;
  }
  return result;
}

} // namespace fsdpq::rt
