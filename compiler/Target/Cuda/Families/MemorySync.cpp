//===- MemorySync.cpp - Where threads of a group wait ---------------------===//

#include "compiler/Target/Cuda/Families/MemorySync.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

/// With `loop`: in different iterations of it.
static bool conflict(const Touch &a, const Touch &b, Operation *loop) {
  if (a.access.memref != b.access.memref ||
      (!a.access.isWrite && !b.access.isWrite))
    return false;
  if (a.who == Who::Leader && b.who == Who::Leader)
    return false;
  auto counted = dyn_cast_or_null<scf::ForOp>(loop);
  if (loop && !counted)
    return true;
  if (a.who == Who::Owner && b.who == Who::Owner &&
      areElementwise(a.access, b.access, counted))
    return false;
  return loop ? !areDisjointAcross(counted, a.access, b.access)
              : !areDisjoint(a.access, b.access);
}

static bool conflictsAny(ArrayRef<Touch> some, ArrayRef<Touch> others,
                         Operation *loop) {
  return llvm::any_of(some, [&](const Touch &a) {
    return llvm::any_of(others,
                        [&](const Touch &b) { return conflict(a, b, loop); });
  });
}

bool MemorySync::needsBarrier(ArrayRef<Touch> touches) const {
  return conflictsAny(pending, touches, nullptr);
}

void MemorySync::barrier() {
  pending.clear();
  // A barrier in a branch is not always passed.
  for (Loop &loop : loops)
    loop.hasBarrier |= loop.branches == branches.size();
}

void MemorySync::add(ArrayRef<Touch> touches) {
  llvm::append_range(pending, touches);
  for (Loop &loop : loops)
    if (!loop.hasBarrier)
      llvm::append_range(loop.first, touches);
}

void MemorySync::enterLoop(Operation *loop) {
  loops.push_back({loop, pending, {}, (unsigned)branches.size()});
}

bool MemorySync::needsBarrierAtEnd() const {
  const Loop &loop = loops.back();
  return conflictsAny(pending, loop.first, loop.op);
}

void MemorySync::leaveLoop() {
  // The body may not have run at all.
  llvm::append_range(pending, loops.back().pendingBefore);
  loops.pop_back();
}

void MemorySync::enterBranch() { branches.push_back({pending, {}}); }

void MemorySync::nextBranch() {
  branches.back().pendingAfter = pending;
  pending = branches.back().pendingBefore;
}

void MemorySync::leaveBranches() {
  llvm::append_range(pending, branches.back().pendingAfter);
  branches.pop_back();
}
