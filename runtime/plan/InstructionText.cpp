#include "runtime/plan/InstructionText.h"

namespace fsdpq::rt {

const char *opcodeName(plan::Op op) {
  switch (op) {
  case plan::Op::Launch:
    return "launch";
  case plan::Op::Gemm:
    return "gemm";
  case plan::Op::Copy:
    return "copy";
  case plan::Op::Fill:
    return "fill";
  case plan::Op::Loop:
    return "loop";
  case plan::Op::AllGather:
    return "all_gather";
  case plan::Op::ReduceScatter:
    return "reduce_scatter";
  case plan::Op::AllReduce:
    return "all_reduce";
  case plan::Op::Record:
    return "record";
  case plan::Op::Wait:
    return "wait";
  case plan::Op::NONE:
    break;
  }
  return "unknown";
}

std::string instructionText(const plan::Plan &plan,
                            const plan::Instruction &instruction) {
  std::string text = opcodeName(instruction.op_type());
  const plan::Launch *launch = instruction.op_as_Launch();
  if (launch && launch->kernel() < plan.kernels()->size())
    text += " " + plan.kernels()->Get(launch->kernel())->name()->str();
  return text;
}

} // namespace fsdpq::rt
