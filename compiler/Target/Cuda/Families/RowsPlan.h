//===- RowsPlan.h - Which loops read which tiles ----------------*- C++ -*-===//
#pragma once

#include "compiler/Target/Cuda/Families/Emitter.h"

namespace fsdpq::cuda {

/// A loop over the elements that a thread owns: some stores, a reduction, or
/// the tiles that an scf.for begins with or goes on with. Or, with elements =
/// 0, no loop: a tensor.extract, which all threads compute.
struct Consumer {
  Operation *at;                        ///< where in the program it stands
  SmallVector<kern::StoreOp, 2> stores; ///< the last of which is `at`
  SmallVector<Value> tiles;             ///< what it computes
  int64_t elements = 0;
};

/// A tile in memory that a consumer reads.
struct TileUse {
  kern::LoadOp load;
  unsigned consumer;
  bool
      isOwned; ///< by the thread that owns the same element of what is computed
};

/// Tiles with the same number of elements.
struct TileClass {
  int64_t vector = 1; ///< neighbours that a thread owns
  int64_t bytes = 0;  ///< of memory that is read for an element
  int64_t inputs = 0;
  bool isInLoop = false;
};

/// What a kernel's body does, whatever the number of threads.
struct RowsAnalysis {
  /// Fails with `declined` set.
  static FailureOr<RowsAnalysis> of(kern::FuncOp kernel, Decline &declined);

  SmallVector<Consumer> consumers;
  SmallVector<TileUse> uses;
  llvm::MapVector<int64_t, TileClass> classes;
  /// Loads of what was just stored, and the tile that it was.
  llvm::DenseMap<Value, Value> forwarded;
  /// Loads that must be read where they stand.
  llvm::DenseSet<Value> early;

  const Consumer *getConsumer(Operation *at) const;
};

/// The tile without its reshapes.
Value skipReshapes(Value tile);

} // namespace fsdpq::cuda
