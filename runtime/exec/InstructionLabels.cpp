#include "runtime/exec/InstructionLabels.h"
#include "runtime/plan/Communication.h"
#include "runtime/plan/InstructionText.h"

namespace fsdpq::rt {

namespace {

/// What follows the opcode in a name.
std::string objectOf(const plan::Plan &plan,
                     const plan::Instruction &instruction) {
  switch (instruction.op_type()) {
  case plan::Op::Copy:
    return plan.slices()->Get(instruction.op_as_Copy()->dst())->name()->str();
  case plan::Op::Fill:
    return plan.slices()->Get(instruction.op_as_Fill()->dst())->name()->str();
  case plan::Op::Gemm: {
    const plan::Gemm &gemm = *instruction.op_as_Gemm();
    return std::to_string(gemm.m()->cap()) + "x" +
           std::to_string(gemm.n()->cap()) + "x" +
           std::to_string(gemm.k()->cap());
  }
  default:
    return movedName(plan, instruction);
  }
}

std::string nameOf(const plan::Plan &plan,
                   const plan::Instruction &instruction) {
  if (const plan::Launch *launch = instruction.op_as_Launch())
    return plan.kernels()->Get(launch->kernel())->name()->str();
  const std::string object = objectOf(plan, instruction);
  return opcodeName(instruction.op_type()) +
         (object.empty() ? "" : " " + object);
}

void appendLabels(
    const plan::Plan &plan, const std::string &function,
    const flatbuffers::Vector<flatbuffers::Offset<plan::Instruction>> &body,
    std::vector<Trace::Label> &labels) {
  for (const plan::Instruction *instruction : body) {
    labels.push_back(
        {nameOf(plan, *instruction),
         instruction->location() ? instruction->location()->str() : "",
         trafficBytes(plan, *instruction), function});
    if (const plan::Loop *loop = instruction->op_as_Loop())
      appendLabels(plan, function, *loop->body(), labels);
  }
}

} // namespace

Trace::Kind traceKind(plan::Op op) {
  switch (op) {
  case plan::Op::AllGather:
  case plan::Op::ReduceScatter:
  case plan::Op::AllReduce:
    return Trace::Kind::Communication;
  case plan::Op::Wait:
    return Trace::Kind::Wait;
  default:
    return Trace::Kind::Work;
  }
}

std::vector<Trace::Label> instructionLabels(const plan::Plan &plan,
                                            const plan::Function &function) {
  std::vector<Trace::Label> labels;
  appendLabels(plan, function.name()->str(), *function.body(), labels);
  return labels;
}

} // namespace fsdpq::rt
