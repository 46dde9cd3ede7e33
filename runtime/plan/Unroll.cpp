#include "runtime/plan/Unroll.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/Extents.h"
#include "runtime/plan/Mesh.h"
#include "runtime/support/Error.h"

#include <algorithm>
#include <string>
#include <vector>

namespace fsdpq::rt {

namespace {

using Body = flatbuffers::Vector<flatbuffers::Offset<plan::Instruction>>;
using Visitor = std::function<void(const UnrolledInstruction &)>;

bool dependsOnScalar(const plan::Extent &extent) {
  return extent.scalar() >= 0 && extent.mul() != 0;
}

/// Instructions of `body` in text order, those of inner loops included.
uint32_t countInstructions(const Body &body) {
  uint32_t count = body.size();
  for (const plan::Instruction *instruction : body)
    if (const plan::Loop *loop = instruction->op_as_Loop())
      count += countInstructions(*loop->body());
  return count;
}

class Unroller {
public:
  Unroller(const plan::Plan &plan, const plan::Function &function,
           int64_t index, const Visitor &visit)
      : plan(plan), function(function), visit(visit), indices{index} {}

  void walk(const Body &body, uint32_t number, bool inScalarLoop) {
    for (const plan::Instruction *instruction : body) {
      const uint32_t own = number++;
      const plan::Loop *loop = instruction->op_as_Loop();
      if (!loop) {
        count();
        visit({*instruction, own, indices, inScalarLoop});
        continue;
      }
      const int64_t trips = countAt(plan, *loop->count(), indices);
      const bool isScalarLoop = inScalarLoop || dependsOnScalar(*loop->count());
      for (int64_t trip = 0; trip < trips; ++trip) {
        count(); // empty loops take time too
        indices.push_back(trip);
        walk(*loop->body(), number, isScalarLoop);
        indices.pop_back();
      }
      number += countInstructions(*loop->body());
    }
  }

private:
  void count() {
    if (++visited > maxUnrolled)
      throw Error(3026, ExitCode::BadInput,
                  "function '" + function.name()->str() +
                      "' unrolls to more than " + std::to_string(maxUnrolled) +
                      " instructions",
                  "", "make the plan for a smaller batch or fewer layers");
  }

  const plan::Plan &plan;
  const plan::Function &function;
  const Visitor &visit;
  std::vector<int64_t> indices;
  uint64_t visited = 0;
};

} // namespace

void unroll(const plan::Plan &plan, const plan::Function &function,
            int64_t index, const Visitor &visit) {
  Unroller(plan, function, index, visit).walk(*function.body(), 0, false);
}

int64_t countAt(const plan::Plan &plan, const plan::Extent &extent,
                Indices indices) {
  const int64_t index = extent.index_mul() == 0 ? 0 : indices[extent.level()];
  return std::max<int64_t>(evaluate(extent, scalarMax(plan, extent), index), 0);
}

uint64_t addressAt(const plan::Slice &slice, Indices indices) {
  return isIndexed(slice) ? offsetAt(slice, indices[slice.level()])
                          : slice.offset();
}

uint32_t ordinalAt(const plan::Slice &slice, Indices indices) {
  const auto *ordinals = slice.ordinals();
  if (!ordinals || ordinals->size() == 0)
    return 0;
  return ordinals->Get(ordinals->size() == 1
                           ? 0
                           : static_cast<uint32_t>(indices[slice.level()]));
}

void forEachAccess(const plan::Plan &plan, const plan::Instruction &instruction,
                   Indices indices,
                   const std::function<void(const SliceAccess &)> &visit) {
  auto sizeOf = [&](uint32_t slice) {
    return plan.slices()->Get(slice)->bytes();
  };
  auto sizeIn = [&](uint32_t slice, const plan::Extent &extent) {
    return dependsOnScalar(extent)
               ? sizeOf(slice)
               : static_cast<uint64_t>(countAt(plan, extent, indices));
  };
  switch (instruction.op_type()) {
  case plan::Op::Launch: {
    const plan::Launch &launch = *instruction.op_as_Launch();
    for (uint32_t i = 0; i < launch.args()->size(); ++i) {
      const plan::Arg &arg = *launch.args()->Get(i);
      if (arg.kind() == plan::ArgKind::Slice)
        visit({arg.slice(), true, i >= launch.writes_from(),
               sizeOf(arg.slice())});
    }
    return;
  }
  case plan::Op::Gemm: {
    const plan::Gemm &gemm = *instruction.op_as_Gemm();
    visit({gemm.a(), true, false, sizeOf(gemm.a())});
    visit({gemm.b(), true, false, sizeOf(gemm.b())});
    visit({gemm.c(), gemm.beta() != 0, true, sizeOf(gemm.c())});
    if (gemm.workspace() >= 0) {
      const auto workspace = static_cast<uint32_t>(gemm.workspace());
      visit({workspace, false, true, sizeOf(workspace)});
    }
    return;
  }
  case plan::Op::Copy: {
    const plan::Copy &copy = *instruction.op_as_Copy();
    visit({copy.src(), true, false, sizeIn(copy.src(), *copy.bytes())});
    visit({copy.dst(), false, true, sizeIn(copy.dst(), *copy.bytes())});
    return;
  }
  case plan::Op::Fill: {
    const plan::Fill &fill = *instruction.op_as_Fill();
    visit({fill.dst(), false, true, sizeIn(fill.dst(), *fill.bytes())});
    return;
  }
  case plan::Op::AllGather: {
    const plan::AllGather &gather = *instruction.op_as_AllGather();
    const auto bytes = static_cast<uint64_t>(gather.bytes());
    visit({gather.src(), true, false, bytes});
    visit({gather.dst(), false, true,
           bytes * groupSize(gather.group(), *plan.mesh())});
    return;
  }
  case plan::Op::ReduceScatter: {
    const plan::ReduceScatter &scatter = *instruction.op_as_ReduceScatter();
    const auto bytes = static_cast<uint64_t>(scatter.elements() *
                                             elementBytes(scatter.type()));
    visit({scatter.src(), true, false, bytes * scatter.ranges()});
    visit({scatter.dst(), scatter.accumulate(), true, bytes});
    return;
  }
  case plan::Op::AllReduce: {
    const plan::AllReduce &reduce = *instruction.op_as_AllReduce();
    visit({reduce.data(), true, true,
           static_cast<uint64_t>(reduce.elements() *
                                 elementBytes(reduce.type()))});
    return;
  }
  case plan::Op::Loop:
  case plan::Op::Record:
  case plan::Op::Wait:
  case plan::Op::NONE:
    return;
  }
}

} // namespace fsdpq::rt
