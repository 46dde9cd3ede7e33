//===- Communication.h - What a plan sends and receives ---------*- C++ -*-===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::rt {

/// Up to so many bytes, ranks that sum something everywhere give each other all
/// of it; beyond, each sums an equal share of whole elements and all take each
/// other's.
inline constexpr int64_t smallAllReduceBytes = int64_t(1) << 14;

/// What one rank moves in the collectives of one kind and group for one unit.
/// Counted is what comes from other ranks; with G ranks in the group:
///   all_gather       (G - 1) * bytes
///   reduce_scatter   (G - 1) * elements * element size, whatever `ranges` is
///   all_reduce       (G - 1) * elements * element size if that is small (see
///                    above), else 2 * (G - 1) * ceil(elements / G) * element size
/// As many bytes are sent as received.
struct Traffic {
  plan::Op kind;
  plan::Group group;
  int32_t unit; ///< whose parameters or gradients; -1: of no unit
  uint64_t calls;
  uint64_t bytes; ///< received; as many are sent
};

/// The traffic of one call of a function, step scalars at their maximum, in the
/// order of each kind's first call. (Functions with an index: at index 0.) The
/// unit is that of the source slice; of the destination where the source has
/// none; or the one whose range or gradient the destination is.
std::vector<Traffic> communicationOf(const plan::Plan &plan,
                                     const plan::Function &function);

/// What a collective moves: the name of the unit whose parameters or gradients
/// these are, else of the slice it reads. "" for other instructions.
std::string movedName(const plan::Plan &plan,
                      const plan::Instruction &instruction);

/// Bytes that one call of a collective moves; 0 for other instructions.
uint64_t trafficBytes(const plan::Plan &plan,
                      const plan::Instruction &instruction);

/// One line each: kind, group, unit, calls, bytes.
std::string trafficText(const plan::Plan &plan,
                        const std::vector<Traffic> &traffic);

} // namespace fsdpq::rt
