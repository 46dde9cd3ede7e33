//===- InsertCollectives.cpp - fsdp-insert-collectives --------------------===//

#include "compiler/Shard/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace fsdpq {
#define GEN_PASS_DEF_FSDPINSERTCOLLECTIVES
#include "compiler/Shard/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct InsertCollectivesPass
    : fsdpq::impl::FsdpInsertCollectivesBase<InsertCollectivesPass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      unitOf.clear();
      for (auto unit : architecture.getBody().getOps<fsdp::UnitOp>())
        for (auto symbol : unit.getParams().getAsRange<FlatSymbolRefAttr>())
          unitOf[symbol.getAttr()] = unit;
      for (auto function :
           architecture.getBody().getOps<FunctionOpInterface>())
        if (failed(insert(function)))
          return signalPassFailure();
    }
  }

private:
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

  LogicalResult insert(FunctionOpInterface function) {
    Block &body = function.getFunctionBody().front();
    llvm::MapVector<fsdp::UnitOp, SmallVector<tfm::UseOp>> uses;
    llvm::SetVector<fsdp::UnitOp> reduced;
    for (Operation &op : body) {
      if (auto use = dyn_cast<tfm::UseOp>(op)) {
        FailureOr<fsdp::UnitOp> unit = findUnit(use, use.getParams());
        if (failed(unit))
          return failure();
        uses[*unit].push_back(use);
      }
      if (auto accumulate = dyn_cast<tfm::AccumulateOp>(op)) {
        FailureOr<fsdp::UnitOp> unit =
            findUnit(accumulate, accumulate.getParams());
        if (failed(unit))
          return failure();
        reduced.insert(*unit);
      }
    }
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    SmallVector<Value> pending;
    for (auto &[unit, _] : uses)
      pending.push_back(fsdp::AllGatherStartOp::create(
          builder, function.getLoc(), unit.getSymName()));
    for (auto [entry, start] : llvm::zip(uses, pending)) {
      Value gathered =
          fsdp::WaitOp::create(builder, function.getLoc(), start).getGathered();
      for (tfm::UseOp use : entry.second) {
        Value view = fsdp::ViewOp::create(builder, use.getLoc(),
                                          use.getResult().getType(), gathered,
                                          use.getParams());
        use.getResult().replaceAllUsesWith(view);
      }
      OpBuilder atEnd(body.getTerminator());
      fsdp::ReleaseOp::create(atEnd, function.getLoc(), gathered);
      ++numGathers;
    }
    for (auto &[unit, replaced] : uses)
      for (tfm::UseOp use : replaced)
        use.erase();
    OpBuilder atEnd(body.getTerminator());
    for (fsdp::UnitOp unit : reduced) {
      fsdp::ReduceScatterStartOp::create(atEnd, function.getLoc(),
                                         unit.getSymName());
      ++numReductions;
    }
    return success();
  }

  llvm::DenseMap<StringAttr, fsdp::UnitOp> unitOf;
};
} // namespace
