//===- MemoryTable.h - What a plan's memory holds ---------------*- C++ -*-===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::rt {

/// The memory of one rank, summed from the plan's arenas, units and parameters.
struct MemoryTable {
  struct Part {
    std::string name;
    uint64_t bytes;
  };
  /// `parts` sums to `bytes`, or is empty where the plan does not tell:
  /// - An arena that says what is in it at its peak: that, then "other".
  /// - One that holds ranges of units: the kinds of their parameters'
  /// components
  ///   ("codes", "absmax_u8", "data f32"), each by its share (an even share of
  ///   what all ranks hold: a component may lie in one rank's range alone),
  ///   then "padding", the rest of the units, and "other", the rest of the
  ///   arena.
  struct Arena {
    std::string name;
    uint64_t bytes;
    std::vector<Part> parts;
  };

  std::vector<Arena> arenas;
  uint64_t total = 0;

  /// One line an arena and a part, sizes in binary units and in bytes.
  std::string text() const;
};

/// `plan` must have passed checkPlan.
MemoryTable buildMemoryTable(const plan::Plan &plan);

/// "1.50 GiB", "12.0 KiB", "7 B".
std::string formatBytes(uint64_t bytes);

} // namespace fsdpq::rt
