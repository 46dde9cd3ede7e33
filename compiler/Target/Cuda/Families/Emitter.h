//===- Emitter.h - A kernel's body as CUDA text -----------------*- C++ -*-===//
//
// What the families rows and tiles have in common. A group of threads works on
// one item. Scalars are computed by all its threads; control flow is the same
// for all. A tile is a function of its index unless the family keeps it
// somewhere.
//
// The emitter reads kernels whose linalg ops are generic (see generalize).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Families/Indices.h"
#include "compiler/Target/Cuda/Families/Scalars.h"
#include "compiler/Target/Cuda/KernelText.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

namespace fsdpq::cuda {

/// Why a family does not take a kernel.
struct Decline {
  Operation *op = nullptr;
  std::string reason;
};

/// A copy of `kernel`, owned by the result, with named linalg ops as generics.
OwningOpRef<ModuleOp> generalize(kern::FuncOp kernel);

/// The kernel in a result of generalize.
kern::FuncOp getKernel(ModuleOp module);

inline RankedTensorType getTileType(Value tile) {
  return cast<RankedTensorType>(tile.getType());
}

/// Values that `wanted` depends on within one block, and the ops that give
/// them.
llvm::SmallPtrSet<Operation *, 16> getSlice(ArrayRef<Value> wanted,
                                            Block *block);

/// Whether the payload reads the element of this operand for its result
/// `number`.
bool readsOperand(linalg::GenericOp op, OpOperand &operand, unsigned number);

class Emitter {
public:
  Emitter(kern::FuncOp kernel, kern::EmissionAttr emission)
      : kernel(kernel), emission(emission), scalars(helpers, tables) {}
  virtual ~Emitter() = default;

  /// Fails with `declined` set.
  FailureOr<KernelText> run(StringRef symbol);
  Decline declined;

protected:
  LogicalResult decline(Operation *op, const Twine &reason);

  // What families decide.

  /// What the text says of itself after the kernel's name.
  virtual std::string describe() = 0;
  /// Called before the body is emitted.
  virtual LogicalResult plan() = 0;
  /// kern.load, kern.store, linalg.generic, tensor.extract.
  virtual LogicalResult emitTile(Operation *op) = 0;
  /// Before a scalar is read by all threads, or written by one.
  virtual void beforeScalar(const Access &access) = 0;
  /// Element of a tile that the family keeps; nothing if it does not.
  virtual std::optional<std::string> getKept(Value tile,
                                             ArrayRef<std::string> index) = 0;
  /// The condition under which a thread is the one of its group that writes
  /// scalars; empty: always.
  virtual std::string getLeader() = 0;
  virtual std::string getForHead(scf::ForOp loop, StringRef counter);
  virtual void enterLoop(Operation *loop) {}
  virtual void leaveLoop(Operation *loop) {}
  /// Around the regions of an scf.if.
  virtual void enterBranch() {}
  virtual void nextBranch() {}
  virtual void leaveBranches() {}
  /// Tiles that an scf.for carries.
  virtual LogicalResult beginCarried(scf::ForOp loop,
                                     ArrayRef<unsigned> numbers);
  virtual LogicalResult assignCarried(scf::ForOp loop,
                                      ArrayRef<unsigned> numbers);
  virtual void endCarried(scf::ForOp loop, ArrayRef<unsigned> numbers) {}
  /// Names that the body uses, before the first item.
  virtual void emitPrologue(Text &prologue) = 0;
  /// Things at the scope of the text, before the function.
  virtual std::string getDeclarations() { return ""; }
  virtual int64_t getSharedBytes() { return emission.getShared(); }

  // Emission.

  std::string fresh(StringRef prefix) {
    return (prefix + Twine(counters[prefix]++)).str();
  }
  LogicalResult emitBlock(Block &block);
  /// Declares a scalar and names `value` so.
  std::string declare(Value value, const Twine &expression, Names &names);

  /// Element of a tile at an index with a name for each dimension.
  FailureOr<std::string> getElement(Value tile, ArrayRef<std::string> index);

  /// Emits what `wanted`, values of the payload, depend on. `dims` names the
  /// iteration, `operand` gives elements.
  using OperandElement =
      llvm::function_ref<FailureOr<std::string>(OpOperand &operand)>;
  LogicalResult emitPayload(linalg::GenericOp op, ArrayRef<Value> wanted,
                            ArrayRef<std::string> dims, OperandElement operand,
                            Names &payload);

  /// An operand's element at an iteration.
  FailureOr<std::string> getOperand(linalg::GenericOp op, OpOperand &operand,
                                    ArrayRef<std::string> dims);

  /// Expressions of indices.
  std::string getIndex(AffineExpr expression, ArrayRef<std::string> dims);
  std::string linearize(ArrayRef<std::string> index, ArrayRef<int64_t> shape);
  SmallVector<std::string> delinearize(StringRef position,
                                       ArrayRef<int64_t> shape);
  /// Where a touch begins, as a pointer.
  std::string getAddress(const Access &access);
  /// The offset of an element of a touch's tile from its begin.
  std::string getOffset(const Access &access, ArrayRef<std::string> index);

  /// Forgets elements that were computed, at places where their names or what
  /// they were read from are no longer there.
  void forgetElements() { elements.clear(); }

  bool isWritten(Value memref) { return written.contains(memref); }
  unsigned getThreads() { return emission.getThreads(); }

  kern::FuncOp kernel;
  kern::EmissionAttr emission;
  Helpers helpers;
  Tables tables;
  Scalars scalars;
  Names names;
  Text text = Text(1);
  /// Where tiles of loads begin.
  llvm::DenseMap<Value, std::string> pointers;
  /// Arguments with accesses of several elements, which need 16-byte alignment.
  llvm::SetVector<Value> vectorised;
  /// Whether the block may go on to further items.
  bool isPersistent() { return emission.getBlocks() != 0; }
  unsigned loopDepth = 0;

private:
  LogicalResult emitOp(Operation *op);
  LogicalResult emitFor(scf::ForOp loop);
  LogicalResult emitWhile(scf::WhileOp loop);
  LogicalResult emitIf(scf::IfOp op);
  LogicalResult emitScalarLoad(memref::LoadOp load);
  LogicalResult emitScalarStore(memref::StoreOp store);
  std::string getScalar(Value value);
  std::string getParameters();
  std::string assemble(StringRef symbol, StringRef body);

  llvm::StringMap<unsigned> counters;
  llvm::DenseSet<Value> written;
  std::map<std::pair<void *, std::string>, std::string> elements;
};

} // namespace fsdpq::cuda
