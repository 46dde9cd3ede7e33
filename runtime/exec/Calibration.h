//===- Calibration.h - A machine's rates from a traced run ------*- C++ -*-===//
#pragma once

#include "runtime/observe/Trace.h"
#include "runtime/plan/Hardware.h"

#include <cstdint>

namespace fsdpq::rt {

/// The rates at which the traced calls of the plan's functions micro_step and
/// optimizer_step ran on this rank, as a description that estimates take (see
/// Hardware.h): products' FLOP/s, kernels' FLOP/s and bytes/s, and by a fit over
/// all collectives a latency and a bandwidth. Only the ratio of all work to all
/// time of a kind counts, so what a step as a whole takes is met best for plans
/// like this one. Micro-batches must have been full: work is counted at capacity.
///
/// Kinds that the plan does not have get the rate of a kind that it has.
/// Error 3045: the trace holds no calls of these functions.
Hardware calibrate(const plan::Plan &plan, const Trace &trace,
                   uint32_t devicesPerNode, uint64_t memoryBytes);

} // namespace fsdpq::rt
