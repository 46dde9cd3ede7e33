#include "runtime/plan/Extents.h"

#include <limits>

namespace fsdpq::rt {

namespace {

/// Closed interval, wide enough for a product of two int64.
struct Interval {
  __int128 low, high;

  bool fitsInt64() const {
    return low >= std::numeric_limits<int64_t>::min() &&
           high <= std::numeric_limits<int64_t>::max();
  }
};

/// {factor * x : x in [0, last]}.
Interval multiples(int64_t factor, int64_t last) {
  __int128 end = static_cast<__int128>(factor) * last;
  return end < 0 ? Interval{end, 0} : Interval{0, end};
}

Interval sum(Interval a, Interval b) {
  return {a.low + b.low, a.high + b.high};
}

} // namespace

std::optional<ExtentRange> rangeOf(const plan::Extent &extent,
                                   int64_t scalarMax, int64_t indexCount) {
  const int64_t lastIndex = std::max<int64_t>(indexCount, 1) - 1;
  const Interval product = multiples(extent.mul(), scalarMax);
  const Interval indexed = multiples(extent.index_mul(), lastIndex);
  if (!product.fitsInt64() || !indexed.fitsInt64())
    return std::nullopt;

  auto divided = [&](__int128 value) {
    return floorDivide(static_cast<int64_t>(value), extent.div());
  };
  const Interval scaled{divided(product.low), divided(product.high)};
  const Interval partial = sum(scaled, indexed);
  const Interval total = sum(partial, {extent.add(), extent.add()});
  if (!partial.fitsInt64() || !total.fitsInt64())
    return std::nullopt;

  const int64_t atMax =
      divided(static_cast<__int128>(extent.mul()) * scalarMax);
  const int64_t lowest =
      static_cast<int64_t>(atMax + indexed.low + extent.add());
  const int64_t upper = static_cast<int64_t>(total.high);
  return ExtentRange{std::min(extent.cap(), upper), upper,
                     std::min(extent.cap(), lowest)};
}

int64_t scalarMax(const plan::Plan &plan, const plan::Extent &extent) {
  return extent.scalar() < 0 ? 0 : plan.scalars()->Get(extent.scalar())->max();
}

bool isIndexed(const plan::Slice &slice) {
  return slice.stride() != 0 || (slice.table() && slice.table()->size() > 0) ||
         (slice.ordinals() && slice.ordinals()->size() > 1);
}

} // namespace fsdpq::rt
