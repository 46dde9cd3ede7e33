//===- InsertEvents.cpp - exec-insert-events ------------------------------===//

#include "compiler/Exec/Passes.h"
#include "dialects/Exec/Exec.h"

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
      builder.setInsertionPointAfter(op);
      previous = exec::RecordOp::create(builder, loc, *getEvent(op), stream);
      numEvents += 1;
    }
  }

  /// Whether nothing but address arithmetic stands between the two.
  static bool follows(Operation *op, Operation *previous) {
    if (op->getBlock() != previous->getBlock())
      return false;
    for (Operation *between = previous->getNextNode(); between != op;
         between = between->getNextNode())
      if (!between || !isa<exec::SliceOp, exec::SubsliceOp>(between))
        return false;
    return true;
  }

  int64_t start = 0;
  SmallVector<int64_t, 2> startedStreams;
};
} // namespace
