//===- InstructionText.h - Instructions in messages -------------*- C++ -*-===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <string>

namespace fsdpq::rt {

/// "gemm", "all_gather": the opcode.
const char *opcodeName(plan::Op op);

/// "launch rms_norm", "gemm", "all_gather": the opcode and what it names. The
/// numbers in the instruction need not be valid.
std::string instructionText(const plan::Plan &plan,
                            const plan::Instruction &instruction);

} // namespace fsdpq::rt
