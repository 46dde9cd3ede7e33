#include "runtime/plan/Estimate.h"
#include "runtime/plan/Cost.h"
#include "runtime/plan/InstructionText.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/Mesh.h"
#include "runtime/plan/Unroll.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <exception>
#include <cstdio>
#include <map>

namespace fsdpq::rt {

namespace {

/// Whether some group of this kind has members on several nodes.
bool spansNodes(plan::Group group, const plan::Mesh &mesh, uint32_t perNode) {
  const uint32_t ranks = mesh.ranks(), shards = mesh.shards();
  auto differ = [&](uint32_t a, uint32_t b) {
    return a / perNode != b / perNode;
  };
  switch (group) {
  case plan::Group::World:
    break;
  case plan::Group::Shard:
    for (uint32_t first = 0; first < ranks; first += shards)
      if (differ(first, first + shards - 1))
        return true;
    return false;
  case plan::Group::Replica:
    for (uint32_t first = 0; first < shards; ++first)
      if (differ(first, first + ranks - shards))
        return true;
    return false;
  }
  return differ(0, ranks - 1);
}

/// What the simulation does with one function.
class Simulation {
public:
  Simulation(const plan::Plan &plan, const plan::Function &function,
             const Hardware &hardware)
      : plan(plan), function(function), hardware(hardware),
        now(plan.streams()->size()), events(plan.events()),
        collectives(plan.streams()->size()) {
    result.name = function.name()->str();
    result.busy.resize(now.size());
  }

  FunctionEstimate run() {
    unroll(plan, function, 0,
           [this](const UnrolledInstruction &unrolled) { execute(unrolled); });
    for (double end : now)
      result.seconds = std::max(result.seconds, end);
    for (auto &[number, site] : sites)
      result.sites.push_back(std::move(site));
    return std::move(result);
  }

private:
  struct Event {
    double time = 0;
    uint16_t stream = 0;
  };
  /// A collective's time on its stream.
  struct Span {
    double begin, end;
    SiteEstimate *site;
  };

  void execute(const UnrolledInstruction &unrolled) {
    const plan::Instruction &instruction = unrolled.instruction;
    const uint16_t stream = instruction.stream();
    if (const plan::Record *record = instruction.op_as_Record()) {
      events[record->event()] = {now[stream], stream};
      return;
    }
    if (const plan::Wait *wait = instruction.op_as_Wait()) {
      waitFor(events[wait->event()], stream);
      return;
    }
    const Cost cost = costOf(plan, unrolled);
    const double seconds =
        cost.isCollective ? collectiveTime(unrolled, cost) : computeTime(cost);
    const double begin = now[stream];
    now[stream] += seconds;
    result.busy[stream] += seconds;
    if (!cost.isCollective)
      return;
    SiteEstimate &site = siteOf(unrolled);
    ++site.calls;
    site.seconds += seconds;
    site.bytes += cost.linkBytes;
    result.bytes += cost.linkBytes;
    if (stream == 0) {
      site.exposed += seconds;
      result.exposed += seconds;
    } else {
      collectives[stream].push_back({begin, now[stream], &site});
    }
  }

  void waitFor(const Event &event, uint16_t stream) {
    if (event.time <= now[stream])
      return;
    if (stream == 0) {
      result.exposed += event.time - now[0];
      // The collectives on the other stream during this time are the cause.
      const std::vector<Span> &spans = collectives[event.stream];
      for (size_t i = spans.size(); i-- > 0 && spans[i].end > now[0];)
        spans[i].site->exposed +=
            std::max(0.0, std::min(spans[i].end, event.time) -
                              std::max(spans[i].begin, now[0]));
    }
    now[stream] = event.time;
  }

  SiteEstimate &siteOf(const UnrolledInstruction &unrolled) {
    SiteEstimate &site = sites[unrolled.number];
    if (site.calls == 0) {
      const plan::Instruction &instruction = unrolled.instruction;
      site.instruction = unrolled.number;
      uint32_t source = 0;
      bool isFirst = true;
      forEachAccess(plan, instruction, unrolled.indices,
                    [&](const SliceAccess &access) {
                      if (isFirst)
                        source = access.slice;
                      isFirst = false;
                    });
      site.name = std::string(opcodeName(instruction.op_type())) + " " +
                  plan.slices()->Get(source)->name()->str();
      if (instruction.location() && instruction.location()->size() > 0)
        site.name += " (" + instruction.location()->str() + ")";
    }
    return site;
  }

  //===--- Times ------------------------------------------------------------//

  double computeTime(const Cost &cost) const {
    double seconds = cost.memoryBytes / hardware.memoryBandwidth;
    if (cost.matmulFlops > 0) {
      const double rate = hardware.matmulFlops[static_cast<size_t>(cost.type)];
      if (rate == 0)
        lacks(std::string("matmul_flops.") + matmulField(cost.type),
              "has a gemm of that type");
      seconds = std::max(seconds, cost.matmulFlops / rate);
    }
    return std::max(seconds, cost.kernelFlops / hardware.kernelFlops) +
           hardware.launchOverhead;
  }

  static const char *matmulField(plan::DType type) {
    static constexpr const char *names[] = {"f32", "f64", "bf16"};
    return names[static_cast<int>(type)];
  }

  double collectiveTime(const UnrolledInstruction &unrolled,
                        const Cost &cost) const {
    double seconds = cost.memoryBytes / hardware.memoryBandwidth;
    if (cost.messages > 0) {
      const Link &link = linkOf(unrolled.instruction);
      seconds = std::max(seconds,
                         static_cast<double>(cost.messages) * link.latency +
                             static_cast<double>(cost.linkBytes) / link.bandwidth);
    }
    return seconds + hardware.collectiveOverhead;
  }

  const Link &linkOf(const plan::Instruction &instruction) const {
    const plan::AllGather *gather = instruction.op_as_AllGather();
    const plan::ReduceScatter *scatter = instruction.op_as_ReduceScatter();
    const plan::Group group = gather ? gather->group()
                              : scatter
                                  ? scatter->group()
                                  : instruction.op_as_AllReduce()->group();
    if (!spansNodes(group, *plan.mesh(), hardware.devicesPerNode))
      return hardware.intraNode;
    if (!hardware.interNode)
      lacks("links.inter_node", "has " + std::to_string(plan.mesh()->ranks()) +
                                    " ranks, of which " +
                                    std::to_string(hardware.devicesPerNode) +
                                    " are on one node");
    return *hardware.interNode;
  }

  [[noreturn]] void lacks(const std::string &field,
                          const std::string &why) const {
    throw Error(3042, ExitCode::BadInput,
                "the description of '" + hardware.name + "' has no " + field +
                    ", but the plan " + why,
                "function '" + function.name()->str() + "'",
                "add the field to the description");
  }

  const plan::Plan &plan;
  const plan::Function &function;
  const Hardware &hardware;
  std::vector<double> now; ///< of each stream
  std::vector<Event> events;
  std::vector<std::vector<Span>> collectives; ///< of each stream
  std::map<uint32_t, SiteEstimate> sites;     ///< by instruction
  FunctionEstimate result;
};

const plan::Function &requireFunction(const plan::Plan &plan,
                                      std::string_view name) {
  for (const plan::Function *function : *plan.functions())
    if (function->name()->string_view() == name)
      return *function;
  throw Error(3043, ExitCode::BadInput,
              "the plan has no function '" + std::string(name) + "'",
              "the estimate of an optimizer step",
              "estimate a plan that trains");
}

int64_t requireTokens(const plan::Plan &plan) {
  for (const plan::Scalar *scalar : *plan.scalars())
    if (scalar->name()->string_view() == "tokens" &&
        scalar->kind() == plan::ScalarKind::I64)
      return scalar->max();
  throw Error(3043, ExitCode::BadInput, "the plan has no scalar 'tokens'",
              "the estimate of an optimizer step",
              "estimate a plan that trains");
}

std::string secondsText(double seconds) {
  char text[32];
  if (seconds >= 1)
    std::snprintf(text, sizeof text, "%.3f s", seconds);
  else if (seconds >= 1e-3)
    std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  return text;
}

} // namespace

FunctionEstimate estimateFunction(const plan::Plan &plan,
                                  const plan::Function &function,
                                  const Hardware &hardware) {
  return Simulation(plan, function, hardware).run();
}

PlanEstimate estimateFunctions(const plan::Plan &plan,
                               const std::string &hardwareFile) noexcept {
  PlanEstimate result;
  try {
    const Hardware hardware = readHardware(hardwareFile);
    for (const plan::Function *function : *plan.functions())
      result.functions.push_back(estimateFunction(plan, *function, hardware));
  } catch (const std::exception &error) {
    result.error = error.what();
    std::replace(result.error.begin(), result.error.end(), '\n', ' ');
  }
  return result;
}

StepEstimate estimateStep(const plan::Plan &plan, const Hardware &hardware,
                          int64_t accumulation) {
  StepEstimate step;
  const auto tokens = static_cast<double>(requireTokens(plan));
  step.microStep =
      estimateFunction(plan, requireFunction(plan, "micro_step"), hardware);
  step.optimizerStep =
      estimateFunction(plan, requireFunction(plan, "optimizer_step"), hardware);
  step.accumulation = accumulation;
  const auto times = static_cast<double>(accumulation);
  step.seconds = times * step.microStep.seconds + step.optimizerStep.seconds;
  step.tokensPerSecond = step.seconds > 0 ? times * tokens / step.seconds : 0;
  step.tokensPerSecondOverall = step.tokensPerSecond * plan.mesh()->ranks();
  step.bytes = static_cast<uint64_t>(accumulation) * step.microStep.bytes +
               step.optimizerStep.bytes;
  step.arenaBytes = buildMemoryTable(plan).total;
  step.memoryBytes = hardware.memoryBytes;
  step.hardware = hardware.name;
  for (const flatbuffers::String *stream : *plan.streams())
    step.streams.push_back(stream->str());
  return step;
}

std::string StepEstimate::text() const {
  std::string result;
  auto line = [&](const std::string &name, const std::string &value) {
    char text[256];
    std::snprintf(text, sizeof text, "%-44.120s %14s\n", name.c_str(),
                  value.c_str());
    result += text;
  };
  auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.0f", value);
    return std::string(text);
  };
  auto describe = [&](const FunctionEstimate &function, int64_t calls) {
    line(function.name +
             (calls > 1 ? ", " + std::to_string(calls) + " times" : ""),
         secondsText(function.seconds));
    for (size_t i = 0; i < function.busy.size(); ++i)
      if (function.busy[i] > 0)
        line("  stream " + streams[i] + " works",
             secondsText(function.busy[i]));
    line("  exposed communication", secondsText(function.exposed));
    for (const SiteEstimate &site : function.sites) {
      line("  " + std::to_string(site.instruction) + ": " + site.name,
           secondsText(site.seconds));
      line("     " + std::to_string(site.calls) + " calls, " +
               formatBytes(site.bytes) + ", exposed",
           secondsText(site.exposed));
    }
  };

  line("estimate for", hardware);
  line("memory of a rank", formatBytes(arenaBytes));
  line("memory of a device" + std::string(fits() ? "" : " (does not fit)"),
       formatBytes(memoryBytes));
  line("optimizer step", secondsText(seconds));
  line("tokens/s of a rank", number(tokensPerSecond));
  line("tokens/s of all ranks", number(tokensPerSecondOverall));
  line("bytes a rank receives in a step", formatBytes(bytes));
  describe(microStep, accumulation);
  describe(optimizerStep, 1);
  return result;
}

} // namespace fsdpq::rt
