//===- QuantizeParams.cpp - tfm-quantize-params ---------------------------===//

#include "compiler/Model/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/AsmParser/AsmParser.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMQUANTIZEPARAMS
#include "compiler/Model/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct QuantizeParamsPass
    : fsdpq::impl::TfmQuantizeParamsBase<QuantizeParamsPass> {
  using TfmQuantizeParamsBase::TfmQuantizeParamsBase;

  void runOnOperation() override {
    Type type = parseType(scheme, &getContext());
    if (!type || !qt::isQuantized(type)) {
      getOperation().emitError("[FSDPQ-0150] '") << scheme << "' is no qt type";
      return signalPassFailure();
    }
    llvm::SetVector<tfm::ParamOp> chosen;
    getOperation().walk([&](tfm::LinearOp linear) {
      auto use = linear.getW().getDefiningOp<tfm::UseOp>();
      if (!use)
        return;
      for (auto symbol : use.getParams().getAsRange<SymbolRefAttr>()) {
        auto param =
            SymbolTable::lookupNearestSymbolFrom<tfm::ParamOp>(use, symbol);
        if (param && param.getPerLayer() && !param.getInit())
          chosen.insert(param);
      }
    });
    for (tfm::ParamOp param : chosen)
      quantize(param, type);
    numQuantized += chosen.size();
  }

private:
  void quantize(tfm::ParamOp param, Type type) {
    RankedTensorType quantized =
        RankedTensorType::get(param.getTensorType().getShape(), type);
    param.setType(quantized);
    auto uses = SymbolTable::getSymbolUses(param, param->getParentOp());
    for (SymbolTable::SymbolUse symbolUse : *uses)
      if (auto use = dyn_cast<tfm::UseOp>(symbolUse.getUser()))
        use.getResult().setType(RankedTensorType::get(
            cast<RankedTensorType>(use.getResult().getType()).getShape(), type));
  }
};
} // namespace
