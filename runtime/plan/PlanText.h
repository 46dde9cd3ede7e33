//===- PlanText.h - A plan for people and FileCheck -------------*- C++ -*-===//
#pragma once

#include "runtime/plan/PlanFile.h"

#include <string>

namespace fsdpq::rt {

/// The text form of a plan, one thing a line, in the plan's order:
///
///   scalar tokens : i64 max 8192
///   arena step : 4096 bytes
///   slice x : step + 512, 1024 bytes, at i1 * 2048
///   slice w : base + 0, 64 bytes, at [0, 64, .. 1472] (24 entries)[i0]
///   slice n : step + 0, 64 bytes, at [64, 0][i1], holds layers [1, 2][i1]
///   unit layers : 256 bytes in w layers(0, 1, 2) begin zero store sum
///   function micro_step(i0 < 4) {
///     loop i1 < 24 {  // 0
///       launch rms_norm grid(tokens*9/32) args(w[i1], x[i1], %a) writes_from 1
///       gemm f32 y(pitch 64) = 1 * x(pitch 32) * w'(pitch 32) + 0 * c, m(..)
///       all_gather shard w[i1] -> n[i1], 64 bytes on gather
///       record e0 on gather
///       ...
///
/// Extents print as their formula; the cap only where it can bind. i0 is the
/// function's index, ik the k-th loop's. A quote after a GEMM operand says
/// transposed. A name that several slices or kernels share gets its number
/// ("x#7"). Streams are named where the plan has several. The comment at the
/// end of an instruction holds its number in the function and its location.
std::string planText(const LoadedPlan &plan);

} // namespace fsdpq::rt
