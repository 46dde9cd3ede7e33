//===- ScheduleOverlap.cpp - exec-schedule-overlap ------------------------===//

#include "compiler/Exec/Passes.h"
#include "dialects/Exec/Exec.h"
#include "dialects/Support/Remarks.h"

#include "mlir/IR/IRMapping.h"

namespace fsdpq {
#define GEN_PASS_DEF_EXECSCHEDULEOVERLAP
#include "compiler/Exec/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

static bool isGather(Operation &op) {
  auto gather = dyn_cast<exec::AllGatherOp>(op);
  return gather && gather.getStream() == exec::gatherStream;
}

namespace {
/// Gathers that are needed at one place: the first wait for one of them.
struct Group {
  SmallVector<exec::AllGatherOp> gathers;
  exec::WaitOp lastWait;
};

struct ScheduleOverlapPass
    : fsdpq::impl::ExecScheduleOverlapBase<ScheduleOverlapPass> {
  using ExecScheduleOverlapBase::ExecScheduleOverlapBase;

  void runOnOperation() override {
    if (depth == 0)
      return;
    if (depth != 1) {
      getOperation().emitError("[FSDPQ-0520] depth = ")
          << depth.getValue() << ": 0 or 1 is supported";
      return signalPassFailure();
    }
    getOperation().walk([&](exec::FuncOp function) {
      Block &body = function.getBody().front();
      SmallVector<exec::LoopOp> loops(body.getOps<exec::LoopOp>());
      for (exec::LoopOp loop : loops) {
        hoist(loop.getBody().front());
        rotate(loop);
      }
      hoist(body);
    });
  }

private:
  /// The groups of a block, in order; loops inside are passed over.
  static SmallVector<Group> findGroups(Block &block) {
    SmallVector<Group> groups;
    bool isOpen = false;
    for (Operation &op : block) {
      if (isGather(op)) {
        if (!isOpen)
          groups.emplace_back();
        isOpen = true;
        groups.back().gathers.push_back(cast<exec::AllGatherOp>(op));
      } else if (auto wait = dyn_cast<exec::WaitOp>(op);
                 wait && !groups.empty() &&
                 llvm::any_of(groups.back().gathers, [&](exec::AllGatherOp g) {
                   return g.getEvent() == wait.getEvent();
                 })) {
        groups.back().lastWait = wait;
        isOpen = false;
      }
    }
    return groups;
  }

  /// What a gather's slices are made of goes with it, if it does not stand
  /// before `place` already.
  static void moveAfter(Operation *op, Operation *place) {
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp();
          maker && maker->getBlock() == place->getBlock() &&
          place->isBeforeInBlock(maker)) {
        moveAfter(maker, place);
        place = maker;
      }
    op->moveAfter(place);
  }

  /// Gathers start as soon as those before have come.
  void hoist(Block &block) {
    SmallVector<Group> groups = findGroups(block);
    Operation *place = nullptr;
    for (Group &group : groups) {
      if (place)
        for (exec::AllGatherOp gather : group.gathers) {
          moveAfter(gather, place);
          place = gather;
          ++numHoisted;
        }
      place = group.lastWait;
      if (!place)
        return; // a gather that nobody waits for: leave the rest alone
    }
  }

  //===--- Loops ------------------------------------------------------------//

  /// Copies of a body's operations at one of its iterations.
  class IterationCloner {
  public:
    IterationCloner(OpBuilder &builder, int64_t level, int64_t index)
        : builder(builder), level(level), index(index) {}

    Operation *clone(Operation &op) {
      // Slices that a gather takes may stand anywhere before it in the loop.
      for (Value operand : op.getOperands())
        if (Operation *maker = operand.getDefiningOp();
            maker && maker->getBlock() == op.getBlock() &&
            !mapping.contains(operand))
          clone(*maker);
      Operation *copy = builder.clone(op, mapping);
      if (auto slice = dyn_cast<exec::SliceOp>(copy))
        fix(slice);
      if (auto sub = dyn_cast<exec::SubsliceOp>(copy))
        fix(sub);
      if (auto launch = dyn_cast<exec::LaunchOp>(copy))
        fix(launch);
      return copy;
    }
    bool isCloned(Operation &op) const {
      return op.getNumResults() > 0 && mapping.contains(op.getResult(0));
    }

  private:
    void fix(exec::LaunchOp launch) {
      SmallVector<Attribute> extents;
      for (auto extent : launch.getExtents().getAsRange<kern::ExtentAttr>())
        extents.push_back(kern::ExtentAttr::get(
            extent.getContext(), extent.getScalar(), extent.getMul(),
            extent.getDiv(), 0, extent.getAdd() + extent.getIndexMul() * index,
            extent.getCap()));
      launch.setExtentsAttr(builder.getArrayAttr(extents));
    }

    template <typename SliceType> void fix(SliceType slice) {
      if ((int64_t)slice.getLevel() != level)
        return;
      int64_t offset = slice.getOffset();
      offset += slice.getTable() ? (*slice.getTable())[index]
                                 : (int64_t)slice.getStride() * index;
      slice.setOffset(offset);
      slice.setStride(0);
      slice.setLevel(0);
      slice.removeTableAttr();
      if (auto ordinals = slice.getOrdinals(); ordinals && ordinals->size() > 1)
        slice.setOrdinals(ArrayRef((*ordinals)[index]));
    }

    OpBuilder &builder;
    IRMapping mapping;
    int64_t level, index;
  };

  /// Makes a slice that of the next iteration.
  template <typename SliceType>
  static void advance(SliceType slice, int64_t level) {
    if ((int64_t)slice.getLevel() != level)
      return;
    if (auto table = slice.getTable())
      slice.setTable(table->drop_front());
    slice.setOffset((int64_t)slice.getOffset() + (int64_t)slice.getStride());
    if (auto ordinals = slice.getOrdinals(); ordinals && ordinals->size() > 1)
      slice.setOrdinals(ordinals->drop_front());
  }

  static bool canRotate(exec::LoopOp loop) {
    bool simple = loop.getCount().isConstant();
    loop.getBody().front().walk([&](Operation *op) {
      simple &= !isa<exec::LoopOp>(op);
      // What a kernel is told of the iteration does no harm.
      for (NamedAttribute attribute : op->getAttrs())
        if (!isa<exec::LaunchOp>(op) || attribute.getName() != "extents")
          attribute.getValue().walk([&](kern::ExtentAttr extent) {
            simple &= extent.getIndexMul() == 0;
          });
    });
    return simple;
  }

  /// The first group of each iteration starts in the iteration before: the first
  /// one's before the loop, and the last iteration, which starts none, comes
  /// after it.
  void rotate(exec::LoopOp loop) {
    Block &body = loop.getBody().front();
    SmallVector<Group> groups = findGroups(body);
    if (groups.empty() || !groups.back().lastWait)
      return;
    if (!canRotate(loop)) {
      remarkMissed(loop.getLoc(), RemarkId::Overlap)
          << "gathers of this loop do not start ahead: its iterations differ";
      return;
    }
    constexpr int64_t level = 1; // loops of a function's own block
    int64_t count = loop.getCount().getConstantValue();
    OpBuilder builder(loop);
    IterationCloner first(builder, level, 0);
    for (exec::AllGatherOp gather : groups.front().gathers)
      first.clone(*gather);

    builder.setInsertionPointAfter(loop);
    IterationCloner last(builder, level, count - 1);
    for (Operation &op : body)
      if (!last.isCloned(op) &&
          !llvm::is_contained(groups.front().gathers, &op))
        last.clone(op);

    // The gathers of the first group become those of the next iteration. Their
    // slices may serve others too, so they get their own.
    Operation *place = groups.back().lastWait;
    for (exec::AllGatherOp gather : groups.front().gathers) {
      SmallVector<Value> operands;
      for (Value operand : gather->getOperands())
        operands.push_back(copyChain(operand, place, level));
      gather->setOperands(operands);
      gather->moveAfter(place);
      place = gather;
    }
    loop.setCountAttr(kern::ExtentAttr::getConstant(&getContext(), count - 1));
    ++numRotated;
    if (count == 2)
      unroll(loop);
  }

  /// A copy of a slice for the next iteration, after `place`, which moves on.
  static Value copyChain(Value slice, Operation *&place, int64_t level) {
    Operation *maker = slice.getDefiningOp();
    if (maker->getBlock() != place->getBlock())
      return slice;
    SmallVector<Value> operands;
    for (Value operand : maker->getOperands())
      operands.push_back(copyChain(operand, place, level));
    Operation *copy = maker->clone();
    copy->setOperands(operands);
    place->getBlock()->getOperations().insertAfter(place->getIterator(), copy);
    if (auto whole = dyn_cast<exec::SliceOp>(copy))
      advance(whole, level);
    if (auto sub = dyn_cast<exec::SubsliceOp>(copy))
      advance(sub, level);
    place = copy;
    return copy->getResult(0);
  }

  /// A loop of one iteration is none.
  static void unroll(exec::LoopOp loop) {
    OpBuilder builder(loop);
    IterationCloner only(builder, 1, 0);
    for (Operation &op : loop.getBody().front())
      if (!only.isCloned(op))
        only.clone(op);
    loop.erase();
  }
};
} // namespace
