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
#include "compiler/Target/Cuda/Families/Text.h"
#include "dialects/Kern/Kern.h"

#include "mlir/IR/BuiltinAttributes.h"

#include "llvm/ADT/MapVector.h"

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

/// Constant arrays of a text. Each has a copy in shared memory, where threads
/// find different entries at the speed of one.
class Tables {
public:
  /// The name of the shared array with these entries.
  std::string get(DenseElementsAttr entries);
  /// The name of an array in global memory, for tiles that are constants.
  std::string getGlobal(DenseElementsAttr entries);

  bool hasShared() const { return !shared.empty(); }
  int64_t getSharedBytes() const;
  /// Definitions, outside of functions.
  std::string str() const;
  /// Fills the shared arrays; ends with a barrier. For all threads of a block.
  void fill(Text &text) const;

private:
  llvm::MapVector<Attribute, std::string> shared, global;
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
