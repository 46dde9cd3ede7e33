//===- FuseOptimizer.cpp - tfm-fuse-optimizer -----------------------------===//

#include "compiler/Fuse/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "llvm/ADT/SetVector.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMFUSEOPTIMIZER
#include "compiler/Fuse/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct FuseOptimizerPass : fsdpq::impl::TfmFuseOptimizerBase<FuseOptimizerPass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      if (auto step = architecture.lookupSymbol<tfm::FuncOp>("optimizer_step"))
        fuse(architecture, step);
    }
  }

private:
  void fuse(tfm::ArchitectureOp architecture, tfm::FuncOp step) {
    // The updates of each parameter, to be replaced when all parameters of a
    // unit are updated alike.
    llvm::DenseMap<Attribute, tfm::OptimizerUpdateOp> updates;
    step.walk([&](tfm::OptimizerUpdateOp update) {
      if (update.getParams().size() == 1)
        updates[update.getParams()[0]] = update;
    });
    llvm::DenseMap<Attribute, Attribute> unitOf;
    for (auto unit : architecture.getBody().getOps<fsdp::UnitOp>()) {
      if (!unit.getTrainable() || !fuseUnit(unit, updates))
        continue;
      for (Attribute param : unit.getParams())
        unitOf[param] = FlatSymbolRefAttr::get(unit);
    }
    step.walk([&](tfm::GradNormOp norm) {
      llvm::SetVector<Attribute> names;
      for (Attribute param : norm.getParams())
        names.insert(unitOf.count(param) ? unitOf[param] : param);
      norm.setParamsAttr(ArrayAttr::get(&getContext(), names.getArrayRef()));
    });
  }

  bool fuseUnit(fsdp::UnitOp unit,
                llvm::DenseMap<Attribute, tfm::OptimizerUpdateOp> &updates) {
    tfm::OptimizerUpdateOp first = updates.lookup(unit.getParams()[0]);
    for (Attribute param : unit.getParams()) {
      tfm::OptimizerUpdateOp update = updates.lookup(param);
      if (!first || !update || update.getRuleAttr() != first.getRuleAttr() ||
          update.getOptions() != first.getOptions() ||
          update.getNorm() != first.getNorm()) {
        remarkMissed(unit.getLoc(), RemarkId::FuseOptimizer)
            << ("the parameters of @" + unit.getSymName() +
                " are updated differently")
                   .str();
        return false;
      }
    }
    remarkPassed(unit.getLoc(), RemarkId::FuseOptimizer)
        << ("one update of @" + unit.getSymName()).str()
        << remark::metric("parameters", unit.getParams().size());
    OpBuilder builder(first);
    tfm::OptimizerUpdateOp::create(
        builder, first.getLoc(), builder.getArrayAttr(FlatSymbolRefAttr::get(unit)),
        first.getNorm(), first.getRuleAttr(), first.getOptions());
    for (Attribute param : unit.getParams())
      updates[param].erase();
    ++numFused;
    return true;
  }
};
} // namespace
