//===- InsertOptimizer.cpp - tfm-insert-optimizer -------------------------===//

#include "compiler/Grad/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMINSERTOPTIMIZER
#include "compiler/Grad/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct InsertOptimizerPass
    : fsdpq::impl::TfmInsertOptimizerBase<InsertOptimizerPass> {
  using TfmInsertOptimizerBase::TfmInsertOptimizerBase;

  void runOnOperation() override {
    FailureOr<DictionaryAttr> options = parseSettings();
    if (failed(options))
      return signalPassFailure();
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>())
      insert(architecture, *options);
  }

private:
  FailureOr<DictionaryAttr> parseSettings() {
    Builder builder(&getContext());
    SmallVector<NamedAttribute> options;
    for (StringRef setting : settings) {
      auto [name, text] = setting.split('=');
      double value;
      if (name.empty() || text.getAsDouble(value))
        return getOperation().emitError("[FSDPQ-0220] the optimizer option '")
               << setting << "' is not name=number";
      options.push_back(
          builder.getNamedAttr(name, builder.getF64FloatAttr(value)));
    }
    return builder.getDictionaryAttr(options);
  }

  void insert(tfm::ArchitectureOp architecture, DictionaryAttr options) {
    OpBuilder builder = OpBuilder::atBlockEnd(&architecture.getBody().front());
    Location loc = architecture.getLoc();
    SmallVector<Attribute> params;
    for (auto param : architecture.getBody().getOps<tfm::ParamOp>())
      if (param.getTrainable())
        params.push_back(FlatSymbolRefAttr::get(param.getSymNameAttr()));
    auto function = tfm::FuncOp::create(builder, loc, "optimizer_step",
                                        builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(&function.getBody().front());
    Value norm = tfm::GradNormOp::create(
        builder, loc, RankedTensorType::get({1}, builder.getF32Type()),
        builder.getArrayAttr(params));
    for (Attribute param : params)
      tfm::OptimizerUpdateOp::create(builder, loc, builder.getArrayAttr(param),
                                     norm, builder.getStringAttr(rule), options);
    tfm::ReturnOp::create(builder, loc, ValueRange());
  }
};
} // namespace
