//===- Extents.h - What extents and addresses can become --------*- C++ -*-===//
//
// The one place that knows the formula of plan.fbs:
//   min(cap, floor(mul * S / div) + index_mul * I + add)
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan_generated.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace fsdpq::rt {

/// floor(a / b) for b > 0.
inline int64_t floorDivide(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

/// The extent at step scalar `scalar` and index `index`. Both must be in the
/// ranges the plan was checked for: then nothing overflows.
inline int64_t evaluate(const plan::Extent &extent, int64_t scalar,
                        int64_t index) {
  int64_t scaled = extent.mul() * scalar;
  if (extent.div() != 1)
    scaled = floorDivide(scaled, extent.div());
  return std::min(extent.cap(),
                  scaled + extent.index_mul() * index + extent.add());
}

/// The values of an extent over all scalars in [0, max] and all indices.
struct ExtentRange {
  int64_t upper;            ///< greatest value, after the cap
  int64_t upperWithoutCap;  ///< greatest value if there were no cap
  int64_t lowestAtCapacity; ///< least value over the indices at scalar = max
};

/// The range of `extent` with its scalar in [0, scalarMax] and its index in
/// [0, max(indexCount, 1)), or nullopt if an intermediate result leaves int64.
/// Needs div > 0 and scalarMax >= 0.
std::optional<ExtentRange> rangeOf(const plan::Extent &extent,
                                   int64_t scalarMax, int64_t indexCount);

/// The upper bound of the scalar that `extent` reads (0 if it reads none).
/// The scalar's number must be valid.
int64_t scalarMax(const plan::Plan &plan, const plan::Extent &extent);

/// Whether the address or the ordinal of a slice depends on its index.
bool isIndexed(const plan::Slice &slice);

/// The address of `slice` in its arena at `index` of its level.
inline uint64_t offsetAt(const plan::Slice &slice, int64_t index) {
  if (slice.table() && slice.table()->size() > 0)
    return slice.offset() + slice.table()->Get(static_cast<uint32_t>(index));
  return slice.offset() + static_cast<uint64_t>(slice.stride() * index);
}

} // namespace fsdpq::rt
