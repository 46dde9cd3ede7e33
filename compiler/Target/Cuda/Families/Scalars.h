//===- Scalars.h - Scalar operations as CUDA expressions --------*- C++ -*-===//
//
// A bf16 is held as its 16 bits (u16), an index as an i64. Operands of an
// expression are names or literals. What may round differently is told from the
// flags: without `contract` a product or sum is an intrinsic that no fma takes
// in.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Families/Helpers.h"
#include "compiler/Target/Cuda/Families/Tables.h"
#include "dialects/Kern/Kern.h"

namespace fsdpq::cuda {

/// The type that holds a value: float, double, u16 (bf16), i8, int, i64 (and
/// index), bool. Empty for others.
StringRef getTypeName(Type type);

/// Bytes of an element in memory; 1 for i1.
int64_t getBytes(Type element);

/// A number as it stands in a text, of any type that getTypeName knows.
std::string getLiteral(TypedAttr value);
std::string getLiteral(Type type, const APFloat &value);

/// What IR values are called. Looks into the outer names for what it lacks.
class Names {
public:
  explicit Names(const Names *outer = nullptr) : outer(outer) {}
  void set(Value value, const Twine &name) { own[value] = name.str(); }
  /// The name, or the literal of a constant, or "".
  std::string get(Value value) const;

private:
  const Names *outer;
  llvm::DenseMap<Value, std::string> own;
};

class Scalars {
public:
  Scalars(Helpers &helpers, Tables &tables)
      : helpers(helpers), tables(tables) {}

  /// The value of `op` (arith, math, kern.lookup) given the names of its
  /// operands, or nothing if no expression is known.
  std::optional<std::string> getExpression(Operation *op, const Names &names);

private:
  std::optional<std::string> getFloat(Operation *op, ArrayRef<std::string> v,
                                      Type type);
  std::optional<std::string> getInteger(Operation *op, ArrayRef<std::string> v,
                                        Type type);
  std::optional<std::string> getConversion(Operation *op, StringRef v);

  Helpers &helpers;
  Tables &tables;
};

} // namespace fsdpq::cuda
