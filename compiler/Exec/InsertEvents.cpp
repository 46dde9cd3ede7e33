//===- InsertEvents.cpp - exec-insert-events ------------------------------===//

#include "compiler/Exec/Passes.h"
#include "dialects/Exec/Exec.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace fsdpq {
#define GEN_PASS_DEF_EXECINSERTEVENTS
#include "compiler/Exec/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

/// The event that a collective records when it is done, if `op` is one.
static std::optional<int64_t> getEvent(Operation *op) {
  if (isa<exec::AllGatherOp, exec::ReduceScatterOp, exec::AllReduceOp>(op))
    return op->getAttrOfType<IntegerAttr>("event").getInt();
  return std::nullopt;
}

namespace {
struct InsertEventsPass : fsdpq::impl::ExecInsertEventsBase<InsertEventsPass> {
  void runOnOperation() override {
    getOperation().walk([&](exec::FuncOp function) { insert(function); });
  }

private:
  void insert(exec::FuncOp function) {
    dropImplied(function);
    SmallVector<Operation *> collectives;
    int64_t next = 0;
    function.walk([&](Operation *op) {
      if (std::optional<int64_t> event = getEvent(op)) {
        collectives.push_back(op);
        next = std::max(next, *event + 1);
      }
    });
    Operation *previous = nullptr;
    for (Operation *op : collectives) {
      int64_t stream = op->getAttrOfType<IntegerAttr>("stream").getInt();
      OpBuilder builder(op);
      Location loc = op->getLoc();
      // Collectives in a row start from the same place.
      if (!previous || !follows(op, previous)) {
        exec::RecordOp::create(builder, loc, next, exec::computeStream);
        numEvents += 1;
        start = next++;
        startedStreams.clear();
      }
      if (!llvm::is_contained(startedStreams, stream)) {
        exec::WaitOp::create(builder, loc, start, ValueRange(), stream);
        startedStreams.push_back(stream);
      }
      previous = op;
      if (implied.contains(*getEvent(op)))
        continue;
      builder.setInsertionPointAfter(op);
      previous = exec::RecordOp::create(builder, loc, *getEvent(op), stream);
      numEvents += 1;
    }
  }

  /// A stream's work is done in order: where collectives follow each other and
  /// so do the waits for them, the last wait is for all.
  void dropImplied(exec::FuncOp function) {
    implied.clear();
    llvm::MapVector<int64_t, SmallVector<Operation *>> starts, waits;
    function.walk([&](Operation *op) {
      if (std::optional<int64_t> event = getEvent(op))
        starts[*event].push_back(op);
      if (auto wait = dyn_cast<exec::WaitOp>(op))
        waits[wait.getEvent()].push_back(wait);
    });
    for (auto &[event, ops] : starts) {
      std::optional<int64_t> next;
      bool isImplied = llvm::all_of(ops, [&](Operation *op) {
        Operation *other = getNext(op);
        std::optional<int64_t> found = other ? getEvent(other) : std::nullopt;
        if (!found || (next && *next != *found) ||
            op->getAttr("stream") != other->getAttr("stream"))
          return false;
        next = found;
        return true;
      });
      isImplied &= llvm::all_of(waits[event], [&](Operation *op) {
        auto wait = dyn_cast_or_null<exec::WaitOp>(getNext(op));
        auto own = cast<exec::WaitOp>(op);
        return wait && (int64_t)wait.getEvent() == next &&
               wait.getStream() == own.getStream() && own.getHolds().empty();
      });
      if (!isImplied)
        continue;
      implied.insert(event);
      for (Operation *wait : waits[event])
        wait->erase();
    }
  }

  /// The next operation that is not address arithmetic; null at the end.
  static Operation *getNext(Operation *op) {
    Operation *next = op->getNextNode();
    while (next && isa<exec::SliceOp, exec::SubsliceOp>(next))
      next = next->getNextNode();
    return next;
  }

  /// Whether nothing but address arithmetic stands between the two.
  static bool follows(Operation *op, Operation *previous) {
    return getNext(previous) == op;
  }

  llvm::SmallDenseSet<int64_t> implied; ///< events that nobody needs
  int64_t start = 0;
  SmallVector<int64_t, 2> startedStreams;
};
} // namespace
