#include "runtime/plan/ScheduleCheck.h"
#include "runtime/plan/Extents.h"
#include "runtime/plan/InstructionText.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Unroll.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace fsdpq::rt {

namespace {

/// Time on each stream: how many of its instructions are known to be done.
using Clock = std::vector<uint32_t>;

constexpr uint32_t noStep = UINT32_MAX;

/// An access to some bytes: by which unrolled instruction, through which slice.
/// `step` is noStep for what was done before the function.
struct Use {
  uint32_t step = noStep;
  uint32_t slice = 0;
  uint16_t stream = 0;
  uint32_t time = 0;
};

/// Parameters that a gather put somewhere; unit -1: none.
struct Contents {
  int32_t unit = -1;
  uint32_t ordinal = 0;

  bool operator==(const Contents &) const = default;
};

/// What happened to a byte range: the last write, and since then the last read
/// of each stream that read.
struct History {
  Use write;
  std::vector<Use> reads;
  Contents contents;
};

/// The bytes of one arena that the function touched, as disjoint ranges.
class ByteMap {
public:
  struct Range {
    uint64_t end;
    History history;
  };
  using Iterator = std::map<uint64_t, Range>::iterator;

  /// Calls `visit(begin, end, history)` for ranges that together are exactly
  /// [begin, end).
  template <typename Visit>
  void forEach(uint64_t begin, uint64_t end, Visit visit) {
    for (Iterator at = cover(begin, end); at != ranges.end() && at->first < end;
         ++at)
      visit(at->first, at->second.end, at->second.history);
  }

  /// Makes [begin, end) one range with this history.
  void replace(uint64_t begin, uint64_t end, History history) {
    Iterator first = cover(begin, end), last = first;
    while (last != ranges.end() && last->first < end)
      ++last;
    ranges.erase(std::next(first), last);
    first->second = {end, std::move(history)};
  }

private:
  /// Makes `position` a border, if a range holds it inside.
  void split(uint64_t position) {
    Iterator next = ranges.lower_bound(position);
    if (next == ranges.begin())
      return;
    Range &before = std::prev(next)->second;
    if (before.end <= position)
      return;
    ranges.emplace_hint(next, position, before);
    before.end = position;
  }

  /// Splits ranges at both ends and fills gaps with untouched ones. Returns the
  /// first, at `begin`.
  Iterator cover(uint64_t begin, uint64_t end) {
    split(begin);
    split(end);
    Iterator next = ranges.lower_bound(begin);
    for (uint64_t position = begin; position < end;) {
      if (next == ranges.end() || next->first > position) {
        const uint64_t gapEnd =
            next == ranges.end() ? end : std::min(end, next->first);
        next = ranges.emplace_hint(next, position, Range{gapEnd, {}});
      }
      position = next->second.end;
      ++next;
    }
    return ranges.find(begin);
  }

  std::map<uint64_t, Range> ranges;
};

/// An unrolled instruction, kept for messages.
struct Step {
  const plan::Instruction *instruction;
  uint32_t number;
  size_t firstIndex; ///< in FunctionSchedule::allIndices
  uint32_t depth;
};

/// What is reported once.
using FaultKey =
    std::tuple<ScheduleFaultKind, uint32_t, uint32_t, uint32_t, uint32_t>;

/// One function at one index.
class FunctionSchedule {
public:
  FunctionSchedule(const plan::Plan &plan, const plan::Function &function,
                   int64_t index, std::set<FaultKey> &seen,
                   std::vector<ScheduleFault> &faults)
      : plan(plan), function(function), index(index), seen(seen),
        faults(faults), clocks(plan.streams()->size()), events(plan.events()),
        arenas(plan.arenas()->size()) {
    const Clock start(clocks.size(), 0);
    clocks.assign(clocks.size(), start);
    lastWork = start;
    // What was done before the function is the first stream's first.
    if (!clocks.empty())
      clocks[0][0] = 1;
  }

  void check() {
    unroll(plan, function, index,
           [this](const UnrolledInstruction &unrolled) { execute(unrolled); });
    for (uint16_t stream = 1; stream < clocks.size(); ++stream)
      if (lastWork[stream] > clocks[0][stream])
        report(ScheduleFaultKind::NotJoined, {stream},
               "stream '" + streamName(stream) +
                   "' is not waited for at the end: stream '" + streamName(0) +
                   "' must wait for its last work, " +
                   stepText(lastStep(stream)));
  }

private:
  //===--- Order ------------------------------------------------------------//

  void execute(const UnrolledInstruction &unrolled) {
    const plan::Instruction &instruction = unrolled.instruction;
    stream = instruction.stream();
    if (const plan::Record *record = instruction.op_as_Record()) {
      events[record->event()] = clocks[stream];
      return;
    }
    if (const plan::Wait *wait = instruction.op_as_Wait()) {
      // Nothing if the event was never recorded: the clock is empty.
      const Clock &marked = events[wait->event()];
      for (size_t i = 0; i < marked.size(); ++i)
        clocks[stream][i] = std::max(clocks[stream][i], marked[i]);
      return;
    }

    indices = unrolled.indices;
    steps.push_back({&instruction, unrolled.number, allIndices.size(),
                     static_cast<uint32_t>(indices.size())});
    allIndices.insert(allIndices.end(), indices.begin(), indices.end());
    if (clocks[stream][0] == 0) {
      report(ScheduleFaultKind::NotForked, {stream},
             stepText(currentStep()) +
                 " starts before the function: its stream has not waited for "
                 "anything that stream '" +
                 streamName(0) + "' recorded");
      clocks[stream][0] = 1; // Reported once; the rest is judged without it.
    }
    lastWork[stream] = ++clocks[stream][stream];
    if (unrolled.inScalarLoop && isCollective(instruction))
      report(ScheduleFaultKind::CollectiveOrder, {unrolled.number},
             stepText(currentStep()) +
                 " is in a loop whose count depends on a scalar: ranks may "
                 "call it a different number of times");

    const Contents gathered = gatheredBy(instruction);
    forEachAccess(plan, instruction, indices, [&](const SliceAccess &access) {
      if (access.bytes == 0)
        return;
      if (access.writes)
        write(access, gathered);
      else
        read(access);
    });
  }

  static bool isCollective(const plan::Instruction &instruction) {
    return instruction.op_type() == plan::Op::AllGather ||
           instruction.op_type() == plan::Op::ReduceScatter ||
           instruction.op_type() == plan::Op::AllReduce;
  }

  bool isDone(const Use &use) const {
    return use.step == noStep || clocks[stream][use.stream] >= use.time;
  }

  Use useOf(const SliceAccess &access) const {
    return {currentStep(), access.slice, stream, clocks[stream][stream]};
  }

  void read(const SliceAccess &access) {
    const plan::Slice &slice = *plan.slices()->Get(access.slice);
    const uint64_t begin = addressAt(slice, indices);
    const bool expects = slice.unit() >= 0 && !isStorage(slice);
    const Contents expected{slice.unit(), ordinalAt(slice, indices)};
    const Use use = useOf(access);
    arenas[slice.arena()].forEach(
        begin, begin + access.bytes,
        [&](uint64_t from, uint64_t to, History &history) {
          if (!isDone(history.write))
            reportRace("reads", access, from, to, "writes", history.write);
          if (expects && history.contents != expected)
            reportContents(access, expected, from, to, history);
          for (Use &earlier : history.reads)
            if (earlier.stream == stream) {
              earlier = use;
              return;
            }
          history.reads.push_back(use);
        });
  }

  void write(const SliceAccess &access, const Contents &contents) {
    const plan::Slice &slice = *plan.slices()->Get(access.slice);
    const uint64_t begin = addressAt(slice, indices);
    ByteMap &bytes = arenas[slice.arena()];
    bytes.forEach(
        begin, begin + access.bytes,
        [&](uint64_t from, uint64_t to, History &history) {
          if (!isDone(history.write))
            reportRace("writes", access, from, to, "writes", history.write);
          for (const Use &earlier : history.reads)
            if (!isDone(earlier))
              reportRace("writes", access, from, to, "reads", earlier);
        });
    bytes.replace(begin, begin + access.bytes, {useOf(access), {}, contents});
  }

  //===--- Residency --------------------------------------------------------//

  /// Whether the slice is where parameters are kept, not a copy of them.
  bool isStorage(const plan::Slice &slice) const {
    const plan::Unit &unit = *plan.units()->Get(slice.unit());
    const plan::Slice &range = *plan.slices()->Get(unit.range());
    if (slice.arena() != range.arena())
      return false;
    const uint64_t begin = addressAt(slice, indices);
    const uint64_t kept = offsetAt(range, ordinalAt(slice, indices));
    if (plan.mesh()->shards() == 1)
      return begin >= kept && begin + slice.bytes() <= kept + range.bytes();
    return begin == kept && slice.bytes() == range.bytes();
  }

  /// What an instruction puts into the slice that it writes.
  Contents gatheredBy(const plan::Instruction &instruction) const {
    const plan::AllGather *gather = instruction.op_as_AllGather();
    if (!gather)
      return {};
    const plan::Slice &source = *plan.slices()->Get(gather->src());
    const plan::Mesh &mesh = *plan.mesh();
    if (source.unit() < 0 || !isStorage(source) ||
        groupSize(gather->group(), mesh) != mesh.shards() ||
        gather->group() == plan::Group::Replica)
      return {};
    const plan::Unit &unit = *plan.units()->Get(source.unit());
    if (static_cast<uint64_t>(gather->bytes()) * mesh.shards() != unit.bytes())
      return {};
    return {source.unit(), ordinalAt(source, indices)};
  }

  //===--- Messages ---------------------------------------------------------//

  uint32_t currentStep() const {
    return static_cast<uint32_t>(steps.size() - 1);
  }

  uint32_t lastStep(uint16_t ofStream) const {
    for (uint32_t step = static_cast<uint32_t>(steps.size()); step-- > 0;)
      if (steps[step].instruction->stream() == ofStream)
        return step;
    return noStep;
  }

  std::string streamName(uint16_t number) const {
    return plan.streams()->Get(number)->str();
  }

  /// "instruction 9 (all_gather, layer i + 1) at i1 = 2 on stream 'gather'".
  std::string stepText(uint32_t number) const {
    const Step &step = steps[number];
    std::string text = "instruction " + std::to_string(step.number) + " (" +
                       instructionText(plan, *step.instruction);
    if (step.instruction->location() && step.instruction->location()->size())
      text += ", " + step.instruction->location()->str();
    text += ")";
    for (uint32_t level = function.index_count() > 0 ? 0 : 1;
         level < step.depth; ++level)
      text += (text.back() == ')' ? " at i" : ", i") + std::to_string(level) +
              " = " + std::to_string(allIndices[step.firstIndex + level]);
    return text + " on stream '" + streamName(step.instruction->stream()) + "'";
  }

  std::string sliceName(uint32_t slice) const {
    return "slice '" + plan.slices()->Get(slice)->name()->str() + "'";
  }

  std::string bytesText(uint32_t slice, uint64_t begin, uint64_t end) const {
    const uint32_t arena = plan.slices()->Get(slice)->arena();
    return "bytes [" + std::to_string(begin) + ", " + std::to_string(end) +
           ") of arena '" + plan.arenas()->Get(arena)->name()->str() + "'";
  }

  std::string contentsText(const Contents &contents) const {
    return "ordinal " + std::to_string(contents.ordinal) + " of unit '" +
           plan.units()->Get(contents.unit)->name()->str() + "'";
  }

  void reportRace(const std::string &does, const SliceAccess &access,
                  uint64_t begin, uint64_t end, const std::string &did,
                  const Use &earlier) {
    report(ScheduleFaultKind::Race,
           {steps[currentStep()].number, steps[earlier.step].number,
            access.slice, earlier.slice},
           stepText(currentStep()) + " " + does + " " +
               bytesText(access.slice, begin, end) + " through " +
               sliceName(access.slice) + " and is not ordered after " +
               stepText(earlier.step) + ", which " + did + " them through " +
               sliceName(earlier.slice));
  }

  void reportContents(const SliceAccess &access, const Contents &expected,
                      uint64_t begin, uint64_t end, const History &history) {
    const Use &last = history.write;
    std::string found = "nothing was gathered there";
    if (history.contents.unit >= 0)
      found = "they hold " + contentsText(history.contents) + ", gathered by " +
              stepText(last.step);
    else if (last.step != noStep)
      found = "they were written by " + stepText(last.step) + " through " +
              sliceName(last.slice);
    report(ScheduleFaultKind::Residency,
           {steps[currentStep()].number,
            last.step == noStep ? noStep : steps[last.step].number,
            access.slice, last.slice},
           stepText(currentStep()) + " expects " + contentsText(expected) +
               " in " + bytesText(access.slice, begin, end) + ", " +
               sliceName(access.slice) + ", but " + found);
  }

  void report(ScheduleFaultKind kind, std::vector<uint32_t> key,
              const std::string &message) {
    key.resize(4);
    if (faults.size() < maxScheduleFaults &&
        seen.insert({kind, key[0], key[1], key[2], key[3]}).second)
      faults.push_back(
          {kind, "function '" + function.name()->str() + "': " + message});
  }

  const plan::Plan &plan;
  const plan::Function &function;
  const int64_t index;
  std::set<FaultKey> &seen;
  std::vector<ScheduleFault> &faults;

  std::vector<Clock> clocks; ///< of each stream
  std::vector<Clock> events; ///< of each event's latest record
  Clock lastWork;            ///< of each stream, on its own clock
  std::vector<ByteMap> arenas;
  std::vector<Step> steps;
  std::vector<int64_t> allIndices;

  // The instruction at work.
  uint16_t stream = 0;
  Indices indices;
};

} // namespace

std::vector<ScheduleFault> checkSchedule(const plan::Plan &plan) {
  std::vector<ScheduleFault> faults;
  for (const plan::Function *function : *plan.functions()) {
    std::set<FaultKey> seen;
    std::vector<ScheduleFault> found;
    const int64_t calls = std::max<int64_t>(function->index_count(), 1);
    try {
      if (calls > static_cast<int64_t>(maxUnrolled))
        throw Error(3026, ExitCode::BadInput,
                    "function '" + function->name()->str() + "' takes " +
                        std::to_string(calls) + " indices, more than " +
                        std::to_string(maxUnrolled));
      for (int64_t index = 0; index < calls; ++index)
        FunctionSchedule(plan, *function, index, seen, found).check();
    } catch (const Error &error) {
      found.push_back({ScheduleFaultKind::TooLong, error.what()});
    }
    faults.insert(faults.end(), found.begin(), found.end());
  }
  return faults;
}

const char *scheduleFaultName(ScheduleFaultKind kind) {
  switch (kind) {
  case ScheduleFaultKind::Race:
    return "race";
  case ScheduleFaultKind::NotForked:
    return "not forked";
  case ScheduleFaultKind::NotJoined:
    return "not joined";
  case ScheduleFaultKind::Residency:
    return "residency";
  case ScheduleFaultKind::CollectiveOrder:
    return "collective order";
  case ScheduleFaultKind::TooLong:
    return "too long";
  }
  return "unknown";
}

} // namespace fsdpq::rt
