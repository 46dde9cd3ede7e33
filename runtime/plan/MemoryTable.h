//===- MemoryTable.h - What a plan's memory holds ---------------*- C++ -*-===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdpq::rt {

/// The memory of one rank, summed from the plan's arenas and slices.
struct MemoryTable {
  /// A kind of parameter component ("codes", "absmax_u8", "data f32") in an
  /// arena: the bytes that such components of all parameters and layers cover.
  /// Bytes that two parameters share (tied embeddings) count once. The last
  /// part, "other", is what no component covers: padding and the like.
  struct Part {
    std::string name;
    uint64_t bytes;
  };
  /// `parts` is empty where no parameter lives; else it sums to `bytes`.
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
