//===- InsertCollectives.cpp - fsdp-insert-collectives --------------------===//

#include "compiler/Shard/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace fsdpq {
#define GEN_PASS_DEF_FSDPINSERTCOLLECTIVES
#include "compiler/Shard/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
/// The uses of one unit between two stacks: it is whole from the first to the
/// last of them.
struct Residency {
  fsdp::UnitOp unit;
  SmallVector<tfm::UseOp> uses;
  Operation *first = nullptr, *last = nullptr;

  void add(tfm::UseOp use, Operation *user) {
    if (!llvm::is_contained(uses, use))
      uses.push_back(use);
    if (!first || user->isBeforeInBlock(first))
      first = user;
    if (!last || last->isBeforeInBlock(user))
      last = user;
  }
};

/// Where a body adds to the gradient of a unit.
struct Accumulation {
  Operation *first = nullptr, *last = nullptr;

  void add(Operation *begin, Operation *end) {
    if (!first || begin->isBeforeInBlock(first))
      first = begin;
    if (!last || last->isBeforeInBlock(end))
      last = end;
  }
};

struct InsertCollectivesPass
    : fsdpq::impl::FsdpInsertCollectivesBase<InsertCollectivesPass> {
  using FsdpInsertCollectivesBase::FsdpInsertCollectivesBase;

  void runOnOperation() override {
    if (!llvm::is_contained({"micro_step", "step"}, StringRef(reduce))) {
      getOperation().emitError("[FSDPQ-0321] reduce = ")
          << reduce << ": micro_step or step is needed";
      return signalPassFailure();
    }
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>())
      if (failed(run(architecture)))
        return signalPassFailure();
  }

private:
  LogicalResult run(tfm::ArchitectureOp architecture) {
    mesh = fsdp::MeshOp::of(architecture);
    if (mesh && mesh.getDeterministic() && reduce == "step")
      return mesh.emitError("[FSDPQ-0322] on a deterministic mesh gradients are "
                            "reduced in each micro-step: reduce=micro_step");
    hasReductions = false;
    architecture.walk([&](Operation *op) {
      hasReductions |= isa<fsdp::GradientStartOp, fsdp::ReduceScatterStartOp,
                           fsdp::ReduceSumsOp, fsdp::ReduceReplicasOp>(op);
    });
    unitOf.clear();
    for (auto unit : architecture.getBody().getOps<fsdp::UnitOp>())
      for (auto symbol : unit.getParams().getAsRange<FlatSymbolRefAttr>())
        unitOf[symbol.getAttr()] = unit;
    chunkBodies.clear();
    SmallVector<tfm::ChunkLoopOp> loops;
    architecture.walk([&](tfm::ChunkLoopOp loop) { loops.push_back(loop); });
    for (tfm::ChunkLoopOp loop : loops)
      hoistUses(loop);
    for (auto function : architecture.getBody().getOps<FunctionOpInterface>())
      if (!chunkBodies.contains(function.getName()) && failed(insert(function)))
        return failure();
    if (auto step = architecture.lookupSymbol<tfm::FuncOp>("optimizer_step"))
      reduceSums(architecture, step);
    return success();
  }

  /// The one unit that holds all of `params`.
  FailureOr<fsdp::UnitOp> findUnit(Operation *op, ArrayAttr params) {
    fsdp::UnitOp found;
    for (auto symbol : params.getAsRange<SymbolRefAttr>()) {
      fsdp::UnitOp unit = unitOf.lookup(symbol.getLeafReference());
      if (!unit || (found && unit != found))
        return op->emitError("[FSDPQ-0320] ")
               << symbol << " is not in one unit with what it is used with";
      found = unit;
    }
    return found;
  }

  static tfm::FuncOp getBody(tfm::ChunkLoopOp loop) {
    return SymbolTable::lookupNearestSymbolFrom<tfm::FuncOp>(
        loop, loop.getBodyAttr());
  }

  /// A unit must not be gathered once a chunk: what the body of a chunk loop
  /// uses becomes one of the values that the loop shares between chunks, and so
  /// do copies of it in another type.
  void hoistUses(tfm::ChunkLoopOp loop) {
    tfm::FuncOp body = getBody(loop);
    chunkBodies.insert(body.getSymName());
    SmallVector<tfm::UseOp> uses(body.getBody().getOps<tfm::UseOp>());
    for (tfm::UseOp use : uses) {
      use->moveBefore(loop);
      SmallVector<tfm::CastOp> casts;
      for (Operation *user : use.getResult().getUsers())
        if (auto cast = dyn_cast<tfm::CastOp>(user))
          casts.push_back(cast);
      for (tfm::CastOp cast : casts) {
        cast->moveBefore(loop);
        share(loop, body, cast.getY());
      }
      share(loop, body, use.getResult());
    }
  }

  /// Passes `value`, which was made in the body and now is before the loop.
  static void share(tfm::ChunkLoopOp loop, tfm::FuncOp body, Value value) {
    Block &block = body.getBody().front();
    auto isInside = [&](OpOperand &operand) {
      return operand.getOwner()->getBlock() == &block;
    };
    if (llvm::none_of(value.getUses(), isInside))
      return;
    unsigned number = block.getNumArguments();
    (void)body.insertArgument(number, value.getType(), {}, value.getLoc());
    value.replaceUsesWithIf(block.getArgument(number), isInside);
    loop.getSharedMutable().append(value);
  }

  LogicalResult insert(FunctionOpInterface function) {
    Block &body = function.getFunctionBody().front();
    if (failed(insertGathers(body)))
      return failure();
    return reduce == "micro_step" && !hasReductions ? insertReductions(body)
                                                    : success();
  }

  using Residencies =
      llvm::MapVector<std::pair<fsdp::UnitOp, int64_t>, Residency>;

  static void joinFirst(Residencies &residencies) {
    Operation *first = nullptr;
    for (auto &[key, residency] : residencies)
      if (!first || residency.first->isBeforeInBlock(first))
        first = residency.first;
    for (auto &[key, residency] : residencies)
      if (residency.unit.getTrainable())
        residency.first = first;
  }

  LogicalResult insertGathers(Block &body) {
    // Stacks come between residencies: what is used before one and after it is
    // gathered twice and does not stay whole for its duration.
    llvm::DenseMap<Operation *, int64_t> stacksBefore;
    int64_t stacks = 0;
    for (Operation &op : body) {
      stacksBefore[&op] = stacks;
      stacks += isa<tfm::StackOp, tfm::StackGradOp>(op);
    }
    Residencies residencies;
    SmallVector<tfm::UseOp> uses(body.getOps<tfm::UseOp>());
    for (tfm::UseOp use : uses) {
      FailureOr<fsdp::UnitOp> unit = findUnit(use, use.getParams());
      if (failed(unit))
        return failure();
      for (Operation *user : use.getResult().getUsers()) {
        Residency &residency = residencies[{*unit, stacksBefore[user]}];
        residency.unit = *unit;
        residency.add(use, user);
      }
    }
    // In a layer, small trained units do not wait for their turn: they come with
    // what the layer needs first.
    if (isa<tfm::LayerOp>(body.getParentOp()))
      joinFirst(residencies);
    // Units that become needed at one place are gathered together.
    llvm::MapVector<Operation *, SmallVector<Residency *>> groups;
    for (auto &[key, residency] : residencies)
      groups[residency.first].push_back(&residency);
    for (auto &[first, group] : groups)
      insertGroup(first, group, stacksBefore);
    for (tfm::UseOp use : uses)
      use.erase();
    return success();
  }

  void insertGroup(Operation *first, MutableArrayRef<Residency *> group,
                   const llvm::DenseMap<Operation *, int64_t> &stacksBefore) {
    OpBuilder builder(first);
    SmallVector<Value> pending;
    for (Residency *residency : group)
      pending.push_back(fsdp::AllGatherStartOp::create(
          builder, residency->unit.getLoc(), residency->unit.getSymName()));
    for (auto [residency, start] : llvm::zip(group, pending)) {
      Value gathered = fsdp::WaitOp::create(builder, residency->unit.getLoc(), start)
                           .getGathered();
      for (tfm::UseOp use : residency->uses) {
        Value view = fsdp::ViewOp::create(builder, use.getLoc(),
                                          use.getResult().getType(), gathered,
                                          use.getParams());
        use.getResult().replaceUsesWithIf(view, [&](OpOperand &operand) {
          return stacksBefore.lookup(operand.getOwner()) ==
                 stacksBefore.lookup(first);
        });
      }
      OpBuilder after(residency->last->getBlock(),
                      std::next(residency->last->getIterator()));
      fsdp::ReleaseOp::create(after, residency->unit.getLoc(), gathered);
      ++numGathers;
    }
  }

  LogicalResult insertReductions(Block &body) {
    llvm::MapVector<fsdp::UnitOp, Accumulation> sums;
    auto record = [&](tfm::AccumulateOp accumulate, Operation *begin,
                      Operation *end) -> LogicalResult {
      FailureOr<fsdp::UnitOp> unit = findUnit(accumulate, accumulate.getParams());
      if (succeeded(unit))
        sums[*unit].add(begin, end);
      return unit;
    };
    for (Operation &op : body) {
      if (auto accumulate = dyn_cast<tfm::AccumulateOp>(op)) {
        // What computes a gradient may write it where it is summed.
        Operation *maker = accumulate.getGradient().getDefiningOp();
        if (failed(record(accumulate, maker ? maker : &body.front(), &op)))
          return failure();
      }
      if (auto loop = dyn_cast<tfm::ChunkLoopOp>(op))
        for (auto accumulate : getBody(loop).getBody().getOps<tfm::AccumulateOp>())
          if (failed(record(accumulate, &op, &op)))
            return failure();
    }
    for (auto &[unit, sum] : sums) {
      OpBuilder before(sum.first);
      fsdp::GradientStartOp::create(before, unit->getLoc(), unit.getSymName());
      OpBuilder after(&body, std::next(sum.last->getIterator()));
      fsdp::ReduceScatterStartOp::create(after, unit->getLoc(), unit.getSymName());
      ++numReductions;
    }
    return success();
  }

  /// What is left to reduce before the gradients are used.
  void reduceSums(tfm::ArchitectureOp architecture, tfm::FuncOp step) {
    if (!mesh || hasReductions)
      return;
    OpBuilder builder = OpBuilder::atBlockBegin(&step.getBody().front());
    for (auto unit : architecture.getBody().getOps<fsdp::UnitOp>()) {
      if (!unit.getTrainable())
        continue;
      if (reduce == "step") {
        fsdp::ReduceSumsOp::create(builder, unit.getLoc(), unit.getSymName());
        ++numReductions;
      }
      if (mesh.getNumShards() < (int64_t)mesh.getRanks() &&
          !mesh.getDeterministic()) {
        fsdp::ReduceReplicasOp::create(builder, unit.getLoc(), unit.getSymName());
        ++numReductions;
      }
    }
  }

  fsdp::MeshOp mesh;
  llvm::DenseMap<StringAttr, fsdp::UnitOp> unitOf;
  llvm::StringSet<> chunkBodies;
  bool hasReductions = false; ///< from an earlier run of this pass
};
} // namespace
