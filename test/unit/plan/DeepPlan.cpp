#include "test/unit/plan/PlanBuilder.h"

namespace fsdpq::test {

PlanBuilder deepPlan(int64_t layers) {
  using plan::Group;
  constexpr uint64_t unitBytes = 4096, rowBytes = 1024;
  constexpr int64_t kernels = 30;
  PlanBuilder b;
  b.mesh(8, 8);
  const uint16_t gather = b.stream("gather");
  const uint32_t started = b.event(), gathered = b.event(), free = b.event();
  const auto count = static_cast<uint64_t>(layers);
  const uint32_t base = b.arena("base", count * unitBytes / 8);
  const uint32_t step =
      b.arena("step", 2 * unitBytes + count * kernels * rowBytes);
  const uint32_t range =
      b.slice("range", base, 0, unitBytes / 8, 0, unitBytes / 8);
  std::vector<int32_t> numbers;
  std::vector<uint32_t> upwards, downwards;
  std::vector<uint64_t> slotsUp, slotsDown, rangesDown;
  for (uint32_t i = 0; i < count; ++i) {
    const auto layer = static_cast<uint32_t>(count) - 1 - i;
    numbers.push_back(static_cast<int32_t>(i));
    upwards.push_back(i);
    slotsUp.push_back(i % 2 * unitBytes);
    downwards.push_back(layer);
    slotsDown.push_back(layer % 2 * unitBytes);
    rangesDown.push_back(layer * unitBytes / 8);
  }
  const uint32_t unit = b.unit("layers", unitBytes, range, numbers);

  // One pass over the layers, each gathered while the one before it is used.
  auto pass = [&](const std::vector<uint32_t> &order,
                  const std::vector<uint64_t> &slots,
                  const std::vector<uint64_t> &ranges) {
    auto tail = [](const auto &all) {
      return std::decay_t<decltype(all)>(all.begin() + 1, all.end());
    };
    const uint32_t first =
        b.unitSlice("first", unit, {order[0]}, base, ranges[0], unitBytes / 8);
    const uint32_t firstSlot =
        b.unitSlice("first.slot", unit, {order[0]}, step, slots[0], unitBytes);
    const uint32_t next = b.unitSlice("next", unit, tail(order), base, 0,
                                      unitBytes / 8, 1, 0, tail(ranges));
    const uint32_t nextSlot = b.unitSlice("next.slot", unit, tail(order), step,
                                          0, unitBytes, 1, 0, tail(slots));
    const uint32_t weights =
        b.unitSlice("w", unit, order, step, 0, 256, 1, 0, slots);
    const uint32_t last =
        b.unitSlice("last", unit, {order.back()}, step, slots.back(), 256);
    auto compute = [&](uint32_t w, uint32_t level, Body &into) {
      for (int64_t i = 0; i < kernels; ++i) {
        auto rows = [&](int64_t back) {
          return sliceArg(b.slice(
              "x", step,
              2 * unitBytes +
                  static_cast<uint64_t>(std::max<int64_t>(i - back, 0)) *
                      rowBytes +
                  (level ? 0 : (count - 1) * kernels * rowBytes),
              rowBytes, level, level ? kernels * int64_t(rowBytes) : 0));
        };
        into.push_back(
            writingFrom(5, launch(0, constant(4), sliceArg(w), rows(1), rows(2),
                                  rows(3), rows(4), rows(0))));
      }
    };
    Body steps = body(
        on(gather, allGather(Group::Shard, firstSlot, first, unitBytes / 8)),
        on(gather, record(gathered)));
    Body layer =
        body(wait(gathered), record(free), on(gather, wait(free)),
             on(gather, allGather(Group::Shard, nextSlot, next, unitBytes / 8)),
             on(gather, record(gathered)));
    compute(weights, 1, layer);
    steps.push_back(loop(constant(layers - 1), std::move(layer)));
    steps.push_back(wait(gathered));
    compute(last, 0, steps);
    return steps;
  };
  b.kernel("work");
  std::vector<uint64_t> rangesUp;
  for (uint64_t i = 0; i < count; ++i)
    rangesUp.push_back(i * unitBytes / 8);
  Body steps = body(record(started), on(gather, wait(started)));
  for (bool forward : {true, false}) {
    if (!forward) {
      steps.push_back(record(free));
      steps.push_back(on(gather, wait(free)));
    }
    for (auto &instruction : forward ? pass(upwards, slotsUp, rangesUp)
                                     : pass(downwards, slotsDown, rangesDown))
      steps.push_back(std::move(instruction));
  }
  b.function("micro_step", std::move(steps));
  return b;
}

} // namespace fsdpq::test
