#include "runtime/exec/Calibration.h"

#include "runtime/plan/Cost.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <array>
#include <map>

namespace fsdpq::rt {
namespace {

/// Work of one kind and the time it took.
struct Tally {
  double work = 0, seconds = 0;

  double rate(double otherwise) const {
    return work > 0 && seconds > 0 ? work / seconds : otherwise;
  }
};

/// seconds = overhead * calls + bytes / bandwidth, by least squares over what
/// the collectives took on average.
struct LinkFit {
  double count = 0, x = 0, y = 0, xx = 0, xy = 0;

  void add(double bytes, double seconds, double calls) {
    count += calls;
    x += calls * bytes;
    y += calls * seconds;
    xx += calls * bytes * bytes;
    xy += calls * bytes * seconds;
  }
  /// Seconds a byte, and of a collective without bytes.
  std::pair<double, double> solve() const {
    const double spread = count * xx - x * x;
    double slope = spread > 0 ? (count * xy - x * y) / spread : 0;
    if (slope <= 0) // of one size only, or all alike
      slope = x > 0 ? y / x : 0;
    return {slope, std::max(0.0, count > 0 ? (y - slope * x) / count : 0)};
  }
};

/// What one execution of each instruction costs on average, by its number.
std::map<uint32_t, Cost> averageCosts(const plan::Plan &plan,
                                      const plan::Function &function) {
  std::map<uint32_t, std::pair<Cost, double>> sums;
  unroll(plan, function, 0, [&](const UnrolledInstruction &unrolled) {
    const plan::Op op = unrolled.instruction.op_type();
    if (op == plan::Op::Record || op == plan::Op::Wait)
      return;
    const Cost cost = costOf(plan, unrolled);
    auto &[sum, count] = sums[unrolled.number];
    sum.type = cost.type;
    sum.isCollective = cost.isCollective;
    sum.messages = cost.messages;
    sum.linkBytes = cost.linkBytes; // collectives are of one size
    sum.matmulFlops += cost.matmulFlops;
    sum.kernelFlops += cost.kernelFlops;
    sum.memoryBytes += cost.memoryBytes;
    ++count;
  });
  std::map<uint32_t, Cost> averages;
  for (auto &[number, entry] : sums) {
    Cost &cost = averages[number] = entry.first;
    cost.matmulFlops /= entry.second;
    cost.kernelFlops /= entry.second;
    cost.memoryBytes /= entry.second;
  }
  return averages;
}

} // namespace

Hardware calibrate(const plan::Plan &plan, const Trace &trace,
                   uint32_t devicesPerNode, uint64_t memoryBytes) {
  std::array<Tally, 3> products;
  Tally kernels, memory;
  LinkFit link;
  for (const plan::Function *function : *plan.functions()) {
    const std::string name = function->name()->str();
    if (name != "micro_step" && name != "optimizer_step")
      continue;
    const std::map<uint32_t, Cost> costs = averageCosts(plan, *function);
    uint32_t number = 0; // labels stand in the order of instructions
    for (const Trace::LabelTimes &times : trace.labelTimes()) {
      if (times.label->function != name)
        continue;
      const auto found = costs.find(number++);
      if (found == costs.end() || times.count == 0)
        continue;
      const Cost &cost = found->second;
      const auto count = static_cast<double>(times.count);
      if (cost.isCollective) {
        link.add(static_cast<double>(cost.linkBytes), times.seconds / count, count);
        continue;
      }
      Tally &tally = cost.matmulFlops > 0
                         ? products[static_cast<size_t>(cost.type)]
                     : cost.kernelFlops > 0 ? kernels
                                            : memory;
      tally.work += count * (cost.matmulFlops > 0   ? cost.matmulFlops
                             : cost.kernelFlops > 0 ? cost.kernelFlops
                                                    : cost.memoryBytes);
      tally.seconds += times.seconds;
    }
  }
  if (memory.seconds == 0)
    throw Error(3045, ExitCode::BadInput,
                "the trace holds no call of micro_step or optimizer_step", "",
                "train for a step at least");

  Hardware hardware;
  hardware.name = "this machine";
  hardware.source = "measured by fsdpq-run train --save_hardware";
  hardware.devicesPerNode = devicesPerNode;
  hardware.memoryBytes = memoryBytes;
  hardware.memoryBandwidth = memory.rate(0);
  // Already in the rates, of which it would be counted twice.
  hardware.launchOverhead = 0;
  double anyProduct = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    hardware.matmulFlops[i] = products[i].rate(0);
    anyProduct = std::max(anyProduct, hardware.matmulFlops[i]);
  }
  hardware.kernelFlops = kernels.rate(std::max(anyProduct, 1.0));
  const auto [secondsPerByte, overhead] = link.solve();
  hardware.collectiveOverhead = overhead;
  hardware.intraNode = {0, secondsPerByte > 0 ? 1 / secondsPerByte : 1e12};
  return hardware;
}

} // namespace fsdpq::rt
