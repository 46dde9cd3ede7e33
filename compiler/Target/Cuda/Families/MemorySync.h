//===- MemorySync.h - Where threads of a group wait -------------*- C++ -*-===//
//
// Follows a text as it is emitted and says where a barrier must stand: between
// two touches of one memref, not both reads, that may meet in an element and
// that different threads may make.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Target/Cuda/Families/Indices.h"

namespace fsdpq::cuda {

/// Which threads make a touch of a tile.
enum class Who {
  Owner,  ///< element n is touched by the thread that owns n in tiles of the
          ///< shape
  Anyone, ///< any element may be touched by any thread
  Leader, ///< one thread, always the same
};

struct Touch {
  Access access;
  Who who;
};

class MemorySync {
public:
  /// Whether a barrier must stand before these touches, which belong together.
  /// If so the caller emits it, then calls `barrier`, then `add`.
  bool needsBarrier(ArrayRef<Touch> touches) const;
  void barrier();
  void add(ArrayRef<Touch> touches);

  void enterLoop(Operation *loop);
  /// Whether a barrier must stand at the end of each iteration.
  bool needsBarrierAtEnd() const;
  void leaveLoop();

  void enterBranch();
  void nextBranch();
  void leaveBranches();

private:
  struct Loop {
    Operation *op;
    SmallVector<Touch> pendingBefore;
    SmallVector<Touch> first; ///< before the first barrier of an iteration
    unsigned branches;        ///< how many were open at its begin
    bool hasBarrier = false;
  };
  struct Branches {
    SmallVector<Touch> pendingBefore, pendingAfter;
  };

  SmallVector<Touch> pending;
  SmallVector<Loop> loops;
  SmallVector<Branches> branches;
};

} // namespace fsdpq::cuda
