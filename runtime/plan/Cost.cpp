#include "runtime/plan/Cost.h"

#include "runtime/plan/Communication.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/Mesh.h"

#include <optional>

namespace fsdpq::rt {

/// Messages that a rank sends in a collective; nothing for other instructions.
static std::optional<int64_t> messagesOf(const plan::Plan &plan,
                                         const plan::Instruction &instruction) {
  auto others = [&](plan::Group group) {
    return static_cast<int64_t>(groupSize(group, *plan.mesh())) - 1;
  };
  if (const plan::AllGather *gather = instruction.op_as_AllGather())
    return others(gather->group());
  if (const plan::ReduceScatter *scatter = instruction.op_as_ReduceScatter())
    return others(scatter->group());
  if (const plan::AllReduce *reduce = instruction.op_as_AllReduce()) {
    const bool isSmall =
        reduce->elements() * elementBytes(reduce->type()) <= smallAllReduceBytes;
    return (isSmall ? 1 : 2) * others(reduce->group());
  }
  return std::nullopt;
}

Cost costOf(const plan::Plan &plan, const UnrolledInstruction &unrolled) {
  Cost cost;
  if (const plan::Gemm *gemm = unrolled.instruction.op_as_Gemm()) {
    auto count = [&](const plan::Extent &extent) {
      return static_cast<double>(countAt(plan, extent, unrolled.indices));
    };
    const double m = count(*gemm->m()), n = count(*gemm->n()),
                 k = count(*gemm->k());
    cost.matmulFlops = 2 * m * n * k;
    cost.type = gemm->dtype();
    const auto width = static_cast<double>(elementBytes(gemm->dtype())),
               outWidth = static_cast<double>(elementBytes(gemm->out_dtype()));
    cost.memoryBytes = (m * k + k * n) * width +
                       m * n * (gemm->beta() != 0 ? 2 : 1) * outWidth;
    return cost;
  }
  forEachAccess(plan, unrolled.instruction, unrolled.indices,
                [&](const SliceAccess &access) {
                  cost.memoryBytes += static_cast<double>(access.bytes);
                });
  if (const plan::Launch *launch = unrolled.instruction.op_as_Launch())
    cost.kernelFlops = launch->flops();
  if (const auto messages = messagesOf(plan, unrolled.instruction)) {
    cost.isCollective = true;
    cost.messages = *messages;
    cost.linkBytes = trafficBytes(plan, unrolled.instruction);
  }
  return cost;
}

} // namespace fsdpq::rt
