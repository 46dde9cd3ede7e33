//===- RowsEmitter.h - Text of kernels with tiles in registers --*- C++ -*-===//
#pragma once

#include "compiler/Target/Cuda/Families/Combiner.h"
#include "compiler/Target/Cuda/Families/Emitter.h"
#include "compiler/Target/Cuda/Families/MemorySync.h"
#include "compiler/Target/Cuda/Families/RowsPlan.h"

namespace fsdpq::cuda {

/// How the elements of a tile are spread over the group.
struct Layout {
  int64_t elements, vector, rounds;
  bool isGuarded;   ///< some threads own nothing in the last round
  int64_t unrolled; ///< rounds that are unrolled
};

class RowsEmitter : public Emitter {
public:
  using Emitter::Emitter;

private:
  std::string describe() override;
  LogicalResult plan() override;
  LogicalResult emitTile(Operation *op) override;
  void beforeScalar(const Access &access) override;
  std::optional<std::string> getKept(Value tile,
                                     ArrayRef<std::string> index) override;
  std::string getLeader() override;
  std::string getForHead(scf::ForOp loop, StringRef counter) override;
  void enterLoop(Operation *loop) override { sync.enterLoop(loop); }
  void leaveLoop(Operation *loop) override;
  void enterBranch() override { sync.enterBranch(); }
  void nextBranch() override { sync.nextBranch(); }
  void leaveBranches() override { sync.leaveBranches(); }
  LogicalResult beginCarried(scf::ForOp loop,
                             ArrayRef<unsigned> tiles) override;
  LogicalResult assignCarried(scf::ForOp loop,
                              ArrayRef<unsigned> tiles) override;
  void endCarried(scf::ForOp loop, ArrayRef<unsigned> tiles) override;
  void emitPrologue(Text &prologue) override;
  std::string getDeclarations() override { return declarations.str(); }

  int64_t group() { return emission.getGroup(); }
  Layout getLayout(int64_t elements);
  int64_t countRegisters(Value tile);
  void chooseHeld();
  bool isHeld(Value tile) { return toHold.contains(tile); }
  /// The tile whose registers hold `tile`, if any do.
  Value getHolder(Value tile);

  /// Whether the text at hand has the tile in registers.
  bool isInRegisters(Value tile) {
    Value holder = getHolder(tile);
    return carried.contains(tile) || (holder && held.contains(holder));
  }

  void emitBarrier();
  void synchronise(ArrayRef<Touch> touches);
  void synchronise(const Consumer &consumer, Who reader);

  LogicalResult emitLoad(kern::LoadOp load);
  LogicalResult emitStores(const Consumer &consumer);
  LogicalResult emitReduction(linalg::GenericOp op);
  LogicalResult emitPartialSums(linalg::GenericOp op,
                                ArrayRef<Combiner> combiners,
                                ArrayRef<std::string> sums);
  void emitCombination(ArrayRef<Combiner> combiners,
                       ArrayRef<std::string> sums);
  LogicalResult emitSequence(linalg::GenericOp op, ArrayRef<std::string> sums);
  LogicalResult emitExtract(tensor::ExtractOp extract);

  /// Calls `body` in a loop over the elements of a tile that a thread owns,
  /// some neighbours at a time, after reading what `tiles` depend on; then
  /// `inner`, if given, in a loop over the neighbours; then `after`.
  using Body = llvm::function_ref<LogicalResult()>;
  LogicalResult emitOwned(const Layout &layout, ArrayRef<Value> tiles,
                          Body before, Body inner, Body after);
  void visitLeaves(Value tile, llvm::DenseSet<Value> &visited,
                   llvm::function_ref<void(Value)> leaf);
  std::string getRead(const Access &access, StringRef pointer);
  int64_t getAccessBytes(const Access &access);
  std::string getAligned(const Access &access, int64_t vector);

  /// The element of a tile at the place that the loops of emitOwned are at.
  /// With `isUnrounded` the f32 that it is the rounded value of, see isRounded.
  FailureOr<std::string> getOwned(Value tile, bool isUnrounded = false);
  bool isRounded(Value tile);
  void forgetOwned() {
    owned.clear();
    payloads.clear();
    forgetElements();
  }
  std::string getCombined(const Combiner &combiner, StringRef a, StringRef b);

  /// The lanes of a group of one warp or less.
  std::string getMask() {
    usesMask = true;
    return "mask";
  }

  std::optional<RowsAnalysis> analysis;
  MemorySync sync;
  llvm::DenseSet<Value> toHold;
  llvm::DenseMap<Value, std::string> held;    ///< arrays of Words, by round
  llvm::DenseMap<Value, std::string> carried; ///< arrays of elements
  llvm::DenseMap<Value, std::string> results; ///< of reductions
  Text declarations = Text(0);
  bool usesMask = false;

  // In the loops of emitOwned.
  Layout layout = {};
  llvm::DenseMap<Value, std::string> leaves; ///< Words of loads
  llvm::DenseMap<std::pair<Value, unsigned>, std::string> owned;
  /// What was computed of an op's payload at the place at hand.
  std::map<Operation *, Names> payloads;
};

} // namespace fsdpq::cuda
