//===- VerifyResidency.cpp - fsdp-verify-residency ------------------------===//

#include "compiler/Shard/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

namespace fsdpq {
#define GEN_PASS_DEF_FSDPVERIFYRESIDENCY
#include "compiler/Shard/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct VerifyResidencyPass
    : fsdpq::impl::FsdpVerifyResidencyBase<VerifyResidencyPass> {
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (isa<tfm::UseOp>(op))
        report(op) << "a parameter is used without its unit";
      if (auto unit = dyn_cast<fsdp::UnitOp>(op); unit && !unit.getParts())
        report(unit) << "@" << unit.getSymName() << " has no layout";
      if (auto start = dyn_cast<fsdp::AllGatherStartOp>(op);
          start && !llvm::hasSingleElement(start->getUsers()))
        report(start) << "the gather of " << start.getUnitAttr() << " has "
                      << llvm::range_size(start->getUsers())
                      << " waits, not one";
      if (isa<fsdp::WaitOp, fsdp::KeptOp>(op))
        checkRelease(op);
      if (auto view = dyn_cast<fsdp::ViewOp>(op))
        checkView(view);
      if (auto kept = dyn_cast<fsdp::KeptOp>(op); kept && !isKept(kept))
        report(kept) << "no layer keeps " << kept.getUnitAttr();
      if (auto start = dyn_cast<fsdp::GradientStartOp>(op))
        checkPair<fsdp::ReduceScatterStartOp>(start, /*after=*/true);
      if (auto reduce = dyn_cast<fsdp::ReduceScatterStartOp>(op))
        checkPair<fsdp::GradientStartOp>(reduce, /*after=*/false);
    });
  }

private:
  InFlightDiagnostic report(Operation *op) {
    signalPassFailure();
    return op->emitOpError("[FSDPQ-0390] after the shard phase: ");
  }

  /// Whether some layer leaves the unit whole.
  static bool isKept(fsdp::KeptOp kept) {
    bool found = false;
    kept->getParentOfType<tfm::ArchitectureOp>().walk([&](fsdp::KeepOp keep) {
      fsdp::UnitOp unit = getUnit(keep.getGathered());
      found |= unit && unit.getSymName() == kept.getUnit();
    });
    return found;
  }

  /// A whole gradient that is begun is reduced once, and none other is.
  template <typename PartnerType, typename OpType>
  void checkPair(OpType op, bool after) {
    int64_t partners = 0;
    for (auto partner : op->getBlock()->template getOps<PartnerType>())
      if (partner.getUnit() == op.getUnit() &&
          op->isBeforeInBlock(partner) == after)
        ++partners;
    if (partners != 1)
      report(op) << "the gradient of " << op.getUnitAttr() << " is "
                 << (after ? "reduced " : "begun ") << partners
                 << " times here, not once";
  }

  static fsdp::UnitOp getUnit(Value gathered) {
    Operation *op = gathered.getDefiningOp();
    if (auto wait = dyn_cast_or_null<fsdp::WaitOp>(op))
      op = wait.getPending().getDefiningOp();
    FlatSymbolRefAttr name;
    if (auto local = dyn_cast_or_null<fsdp::LocalOp>(op))
      name = local.getUnitAttr();
    if (auto kept = dyn_cast_or_null<fsdp::KeptOp>(op))
      name = kept.getUnitAttr();
    if (auto start = dyn_cast_or_null<fsdp::AllGatherStartOp>(op))
      name = start.getUnitAttr();
    return name ? SymbolTable::lookupNearestSymbolFrom<fsdp::UnitOp>(op, name)
                : fsdp::UnitOp();
  }

  /// A gathered unit ends once: released, or kept for the backward pass.
  void checkRelease(Operation *op) {
    Value gathered = op->getResult(0);
    SmallVector<Operation *> ends;
    for (Operation *user : gathered.getUsers())
      if (isa<fsdp::ReleaseOp, fsdp::KeepOp>(user))
        ends.push_back(user);
    if (ends.size() != 1) {
      report(op) << "a gathered unit has " << ends.size() << " releases, not one";
      return;
    }
    for (Operation *user : gathered.getUsers())
      for (Operation *reader : user->getUsers())
        if (reader->getBlock() == ends.front()->getBlock() &&
            ends.front()->isBeforeInBlock(reader))
          report(reader).attachNote(ends.front()->getLoc())
              << "uses a parameter whose unit is released here";
  }

  void checkView(fsdp::ViewOp view) {
    fsdp::UnitOp unit = getUnit(view.getGathered());
    if (!unit) {
      report(view) << "the view is of no known unit";
      return;
    }
    for (Attribute param : view.getParams())
      if (!llvm::is_contained(unit.getParams(), param))
        report(view) << param << " is not in @" << unit.getSymName();
  }
};
} // namespace
