//===- Unroll.h - A function's instructions, loops unrolled -----*- C++ -*-===//
//
// What checks and estimates work on: the list of instructions that a rank gives
// to its device, with every index known and the step scalars at their maximum.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <functional>
#include <span>

namespace fsdpq::rt {

/// The indices at an instruction: [0] is the function's argument, [k] that of
/// the k-th loop around.
using Indices = std::span<const int64_t>;

/// Instructions that one function may unroll to.
inline constexpr uint64_t maxUnrolled = 1'000'000;

struct UnrolledInstruction {
  const plan::Instruction &instruction; ///< not a loop
  uint32_t number;                      ///< in text order, loops counted
  Indices indices;                      ///< valid during the visit
  bool inScalarLoop; ///< a loop around has a count that depends on a scalar
};

/// Calls `visit` for each instruction in the order given to the device. `plan`
/// must have passed checkPlan, save for its order on all ranks (3025). Throws
/// Error 3026 (BadInput) for more than maxUnrolled instructions.
void unroll(const plan::Plan &plan, const plan::Function &function,
            int64_t index,
            const std::function<void(const UnrolledInstruction &)> &visit);

/// The extent at its scalar's maximum, at least 0.
int64_t countAt(const plan::Plan &plan, const plan::Extent &extent,
                Indices indices);

/// The first byte of the slice in its arena.
uint64_t addressAt(const plan::Slice &slice, Indices indices);

/// The ordinal of the slice's unit that is expected in it; 0 without a unit.
uint32_t ordinalAt(const plan::Slice &slice, Indices indices);

/// What an instruction does with a slice: bytes [0, bytes) of it.
struct SliceAccess {
  uint32_t slice;
  bool reads, writes;
  uint64_t bytes;
};

/// Calls `visit` for each slice of an instruction (none for loops and events),
/// sources first. Kernels and GEMMs touch the whole of their slices; so do
/// copies and fills whose size depends on a scalar.
void forEachAccess(const plan::Plan &plan, const plan::Instruction &instruction,
                   Indices indices,
                   const std::function<void(const SliceAccess &)> &visit);

} // namespace fsdpq::rt
