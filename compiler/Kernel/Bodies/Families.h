//===- Families.h - What a body was built from ------------------*- C++ -*-===//
//
// Builders of bodies that targets may have hand-written code for leave the
// shape behind as the attribute `kern.family`. It is a hint where to look:
// `build` makes the body that it describes anew, and only a kernel equal to
// that has its meaning.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Kernel/Bodies.h"

#include <variant>

namespace fsdpq::kernels {

struct AttentionFamily {
  enum Kind { Forward, Delta, GradQ, GradKV } kind;
  AttentionShape shape;
};

struct QuantisedFamily {
  enum Kind { Dequantize, Quantize, QuantizeScales } kind;
  qt::BlockFormat format;
  int64_t count; ///< elements, or scales
  Type element;  ///< of dequantised values; what values to quantise are rounded
                 ///< to first; else f32
};

struct RopeFamily {
  int64_t columns, headDim, heads;
  bool inverse;
  Type element;
};

struct CrossEntropyFamily { ///< fused
  int64_t vocabulary;
  Type element;
};

using Family = std::variant<AttentionFamily, QuantisedFamily, RopeFamily,
                            CrossEntropyFamily>;

/// Gives `kernel` after leaving the hint on it.
kern::FuncOp tag(kern::FuncOp kernel, const Family &family);

/// What the kernel's hint says; nothing without one, or with one of unknown
/// form.
std::optional<Family> getFamily(kern::FuncOp kernel);

/// The kernel that the hint describes, at the builder's insertion point.
kern::FuncOp build(OpBuilder &builder, Location loc, const Family &family);

} // namespace fsdpq::kernels
