#include "runtime/train/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fsdpq::rt {

int64_t Schedule::warmupSteps() const {
  if (kind == ScheduleKind::Constant)
    return 0;
  return static_cast<int64_t>(0.1 * static_cast<double>(total));
}

double Schedule::at(int64_t step) const {
  const int64_t warmup = warmupSteps();
  if (step < warmup)
    return lr * (static_cast<double>(step) / static_cast<double>(warmup));
  const auto decay = static_cast<double>(std::max<int64_t>(1, total - warmup));
  switch (kind) {
  case ScheduleKind::Constant:
    return lr;
  case ScheduleKind::Linear:
    return lr * std::max(0.0, static_cast<double>(total - step) / decay);
  case ScheduleKind::Cosine: {
    const double progress = static_cast<double>(step - warmup) / decay;
    return lr *
           (0.1 + 0.9 * (1 + std::cos(std::numbers::pi * progress)) / 2);
  }
  }
  return lr;
}

} // namespace fsdpq::rt
