//===- BodyBuilder.h - Shorthand to write kernel bodies ---------*- C++ -*-===//
#pragma once

#include "compiler/Kernel/Bodies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fsdpq::kernels {

/// A memref `? x columns`, or with `columns` empty a `?`.
MemRefType rowsOf(Type element, std::optional<int64_t> columns = {});

/// A memref of static shape.
MemRefType arrayOf(Type element, ArrayRef<int64_t> shape);

/// What one item of kernels over flat buffers covers: divides `elements`.
int64_t flatItemSize(int64_t elements);

/// "f32", "f64" or "bf16", for names of kernels.
StringRef nameOf(Type element);

/// A tensor as an operand of a generic: the element at each iteration.
struct Access {
  Value tile;
  AffineMap map;
};

/// Makes a kern.func and the ops of its body. Arithmetic shorthand takes floats
/// (with `flags`) and integers or indices.
///
/// Inside payloads of `generic` and bodies of loops the same builder inserts
/// where it should.
class BodyBuilder : public ImplicitLocOpBuilder {
public:
  /// `name` becomes a symbol. The body computes in getComputeType(element): that
  /// is what `real`, `toElement` and `map` make.
  BodyBuilder(OpBuilder &outer, Location loc, const Twine &name,
              TypeRange arguments, Type element);

  kern::FuncOp getKernel() { return kernel; }
  Value argument(unsigned number) { return kernel.getArguments()[number]; }
  Value item() { return kernel.getItem(); }

  /// Of floating point ops that are made from now on. Multiplications and
  /// additions may become one fma unless a body says otherwise.
  arith::FastMathFlags flags = arith::FastMathFlags::contract;

  // Constants.
  Value index(int64_t value);
  Value i32(int64_t value);
  Value constant(Type type, double value);
  Value real(double value) { return constant(element, value); }

  // Arithmetic.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value negate(Value a);
  Value exp(Value a);
  Value absolute(Value a);
  /// Accumulating steps of reductions, which may be reordered.
  Value sumStep(Value sum, Value term);
  Value maxStep(Value max, Value term);
  /// Quotient and remainder of indices, not negative.
  Value quotient(Value a, Value b);
  Value quotient(Value a, int64_t b) { return quotient(a, index(b)); }
  Value remainder(Value a, Value b);
  Value remainder(Value a, int64_t b) { return remainder(a, index(b)); }
  Value maxIndex(Value a, Value b);
  Value compare(arith::CmpFPredicate predicate, Value a, Value b);
  Value compare(arith::CmpIPredicate predicate, Value a, Value b);
  Value select(Value condition, Value a, Value b);
  Value toIndex(Value integer);
  Value toI32(Value index);
  /// A float as another float type.
  Value toFloat(Value value, Type type);
  Value toElement(Value value) { return toFloat(value, element); }

  /// The entry of an f32 table whose size is a power of two.
  Value lookUp(Value index, ArrayRef<float> table);

  // Memory. Missing trailing indices are 0. What is stored in bf16 is loaded as
  // f32, and rounded once when it is stored.
  Value load(Value memref, ValueRange indices, ArrayRef<int64_t> shape);
  void store(Value tile, Value memref, ValueRange indices);
  Value loadScalar(Value memref, ValueRange indices);
  void storeScalar(Value value, Value memref, ValueRange indices);
  /// Moves a tile as it is stored.
  void copy(Value source, ValueRange from, Value dest, ValueRange to,
            ArrayRef<int64_t> shape);

  // Tiles.
  Value empty(ArrayRef<int64_t> shape, Type type);
  Value empty(ArrayRef<int64_t> shape) { return empty(shape, element); }
  Value fill(ArrayRef<int64_t> shape, Value value);
  Value transpose(Value matrix);
  Value reshape(Value tile, ArrayRef<int64_t> shape);
  Value extract(Value tile, ValueRange indices = {});

  /// Iterates over all dimensions of the maps; those that no output's map has
  /// are reductions. `payload` takes elements of inputs and outputs and gives
  /// the outputs' new ones.
  using Payload = llvm::function_ref<SmallVector<Value>(ValueRange)>;
  SmallVector<Value> generic(ArrayRef<Access> inputs, ArrayRef<Access> outputs,
                             Payload payload);

  /// Elementwise: tiles of one shape.
  Value map(ValueRange tiles, llvm::function_ref<Value(ValueRange)> payload);
  /// Elementwise with several results.
  SmallVector<Value> mapAll(ValueRange tiles, TypeRange types, Payload payload);

  /// Sum over a one-dimensional tile, or tiles of one length, as a scalar of
  /// the type that `term` gives, which is `type`.
  Value sum(ValueRange tiles, Type type,
            llvm::function_ref<Value(ValueRange)> term);
  /// The largest element, or `start`.
  Value max(Value tile, double start,
            llvm::function_ref<Value(Value)> term = {});

  /// c[i, j] += a[.] * b[.] over r; the maps are those of (i, j, r).
  Value contract(Value a, ArrayRef<unsigned> dimsOfA, Value b,
                 ArrayRef<unsigned> dimsOfB, Value c);

  AffineMap dims(ArrayRef<unsigned> results, unsigned count);

  // Control flow.
  using Body =
      llvm::function_ref<SmallVector<Value>(Value index, ValueRange carried)>;
  SmallVector<Value> loop(Value begin, Value end, int64_t step,
                          ValueRange carried, Body body);
  void loop(Value begin, Value end, int64_t step,
            llvm::function_ref<void(Value index)> body);
  /// Cuts [0, count) into tiles of `size` and a shorter last one.
  void tiles(int64_t count, int64_t size,
             llvm::function_ref<void(Value begin, int64_t size)> body);
  using TileBody = llvm::function_ref<SmallVector<Value>(
      Value begin, int64_t size, ValueRange carried)>;
  SmallVector<Value> tiles(int64_t count, int64_t size, ValueRange carried,
                           TileBody body);
  /// Calls `body` with the size of block number `block` when `count` elements
  /// are cut into blocks of `size`: all have it but a shorter last one.
  void blockOf(Value block, int64_t count, int64_t size,
               llvm::function_ref<void(int64_t size)> body);
  void branch(Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);

protected:
  /// Tiles in another floating point type.
  Value convert(Value tile, Type type);

private:
  kern::FuncOp kernel;
  Type element; ///< that is computed in
};

} // namespace fsdpq::kernels
