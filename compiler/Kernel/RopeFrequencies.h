//===- RopeFrequencies.h - Rotations of a rotary embedding ------*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "dialects/Tfm/Tfm.h"

namespace fsdpq {

/// The E/2 angles a position adds, after the scaling of the op's `rope_type`.
/// Fails with an error at the op when the scaling lacks a number it needs.
FailureOr<SmallVector<double>> computeRopeFrequencies(tfm::RopeTableOp op);

} // namespace fsdpq
