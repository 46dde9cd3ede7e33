//===- Schedule.h - The learning rate over a run ----------------*- C++ -*-===//
#pragma once

#include <cstdint>

namespace fsdpq::rt {

enum class ScheduleKind {
  /// The rate itself, no warm-up.
  Constant,
  /// Warm-up, then down to 0 at the end (as Transformers does).
  Linear,
  /// Warm-up, then half a cosine down to a tenth of the rate.
  Cosine,
};

/// The rate of each optimizer step. A warm-up takes the first
/// int(0.1 * totalSteps) steps and starts at 0: with one, the first step
/// changes nothing.
class Schedule {
public:
  Schedule(ScheduleKind kind, double lr, int64_t totalSteps)
      : kind(kind), lr(lr), total(totalSteps) {}

  int64_t warmupSteps() const;
  /// `step` counts from 0; beyond the last the curve goes on.
  double at(int64_t step) const;

private:
  ScheduleKind kind;
  double lr;
  int64_t total;
};

} // namespace fsdpq::rt
