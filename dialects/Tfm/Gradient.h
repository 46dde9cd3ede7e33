//===- Gradient.h - What a derivative rule may ask and give -----*- C++ -*-===//
#pragma once

#include "dialects/Support/LLVM.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace fsdpq::tfm {

/// The view a derivative rule has of the backward pass being built.
class GradientBuilder {
public:
  virtual ~GradientBuilder() = default;

  /// Inserts into the backward pass, at the location of the forward op.
  OpBuilder &builder() { return opBuilder; }
  Location loc() const { return location; }

  /// Gradient of a result, or null when none flows into it.
  virtual Value resultGradient(unsigned result) = 0;

  /// Whether anything trainable depends on this operand's gradient.
  virtual bool needs(unsigned operand) = 0;

  /// A value of the forward pass as the backward pass sees it. Asking for it is
  /// what makes it a residual.
  virtual Value saved(Value forward) = 0;

  /// Adds `gradient` to that of an operand.
  virtual void add(unsigned operand, Value gradient) = 0;

protected:
  GradientBuilder(OpBuilder &builder, Location loc)
      : opBuilder(builder), location(loc) {}

  OpBuilder &opBuilder;
  Location location;
};

} // namespace fsdpq::tfm
