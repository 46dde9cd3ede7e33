//===- InsertAdapters.cpp - tfm-insert-adapters ---------------------------===//

#include "compiler/Model/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMINSERTADAPTERS
#include "compiler/Model/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

/// The module a checkpoint name belongs to: its part before ".weight".
static StringRef getModule(tfm::ParamOp param) {
  StringRef name = param.getHf().value_or("");
  return name.consume_back(".weight") ? name : StringRef();
}

/// The parameter of a linear layer's weight, if that is one per-layer parameter.
static tfm::ParamOp getWeightParam(tfm::LinearOp linear) {
  auto use = linear.getW().getDefiningOp<tfm::UseOp>();
  if (!use || use.getParams().size() != 1)
    return {};
  return SymbolTable::lookupNearestSymbolFrom<tfm::ParamOp>(
      use, cast<SymbolRefAttr>(use.getParams()[0]));
}

namespace {
struct InsertAdaptersPass
    : fsdpq::impl::TfmInsertAdaptersBase<InsertAdaptersPass> {
  using TfmInsertAdaptersBase::TfmInsertAdaptersBase;

  void runOnOperation() override {
    if (rank < 1 || rank > 4096) {
      getOperation().emitError("[FSDPQ-0140] rank = ")
          << rank.getValue() << "; 1 to 4096 are possible";
      return signalPassFailure();
    }
    if (!(dropout >= 0 && dropout < 1)) {
      getOperation().emitError("[FSDPQ-0142] dropout = ")
          << dropout.getValue() << "; 0 or more and less than 1 is possible";
      return signalPassFailure();
    }
    droppedInputs.clear();
    nextSite.clear();
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      SmallVector<tfm::LinearOp> linears;
      llvm::SetVector<StringRef> names;
      architecture.walk([&](tfm::LinearOp linear) {
        tfm::ParamOp param = getWeightParam(linear);
        if (!linear->getParentOfType<tfm::LayerOp>() || !param ||
            getModule(param).empty())
          return;
        linears.push_back(linear);
        names.insert(getModule(param).rsplit('.').second);
      });
      FailureOr<llvm::StringSet<>> wanted = expandTargets(architecture, names);
      if (failed(wanted))
        return signalPassFailure();
      for (tfm::LinearOp linear : linears) {
        tfm::ParamOp param = getWeightParam(linear);
        if (wanted->contains(getModule(param).rsplit('.').second))
          insertAdapter(linear, param);
      }
    }
  }

private:
  FailureOr<llvm::StringSet<>>
  expandTargets(tfm::ArchitectureOp architecture,
                const llvm::SetVector<StringRef> &names) {
    llvm::StringSet<> wanted;
    auto add = [&](ArrayRef<StringRef> modules) {
      bool found = false;
      for (StringRef module : modules)
        if (names.contains(module)) {
          wanted.insert(module);
          found = true;
        }
      return found;
    };
    for (StringRef target : targets) {
      bool found;
      if (target == "all-linear")
        found = add(names.getArrayRef());
      else if (target == "all")
        found = add({"q_proj", "k_proj", "v_proj", "up_proj", "gate_proj",
                     "down_proj"});
      else if (target == "default")
        found = add({"q_proj", "v_proj"});
      else
        found = add(target);
      if (!found)
        return architecture.emitError("[FSDPQ-0141] the adapter target '")
               << target << "' matches no linear layer; there are: "
               << llvm::join(names, ", ");
    }
    if (wanted.empty())
      return architecture.emitError("[FSDPQ-0141] no adapter target is given");
    return wanted;
  }

  /// Declares one factor and gives its value at the insertion point.
  Value addFactor(OpBuilder &builder, tfm::ParamOp base, StringRef factor,
                  RankedTensorType type, StringRef init) {
    std::string symbol = (base.getSymName() + "." + factor).str();
    auto architecture = base->getParentOfType<tfm::ArchitectureOp>();
    if (!architecture.lookupSymbol(symbol)) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfter(base);
      auto param = tfm::ParamOp::create(
          builder, base.getLoc(), builder.getStringAttr(symbol),
          base.getPerLayerAttr(), TypeAttr::get(type), /*hf=*/StringAttr(),
          /*gguf=*/StringAttr(), /*gguf_rope_heads=*/Attribute(),
          builder.getUnitAttr(), builder.getStringAttr(init),
          /*tied_to=*/FlatSymbolRefAttr(), /*tied=*/Attribute(),
          /*rounded=*/TypeAttr());
      param.setHf(("base_model.model." + getModule(base) + "." + factor +
                   ".weight").str());
    }
    return tfm::UseOp::create(builder, base.getLoc(), type,
                              builder.getArrayAttr(FlatSymbolRefAttr::get(
                                  builder.getContext(), symbol)));
  }

  /// What the adapters of `x` read: they share one mask, so that layers of one
  /// input can be joined.
  Value dropSome(OpBuilder &builder, Value x) {
    if (dropout == 0)
      return x;
    Value &dropped = droppedInputs[x];
    if (dropped)
      return dropped;
    const int64_t site = takeSite(*x.getParentBlock());
    if (site > tfm::DropoutAttr::lastSite) {
      emitError(x.getLoc(), "[FSDPQ-0143] the layer has more than ")
          << tfm::DropoutAttr::lastSite + 1
          << " places that drop: adapt fewer of its modules";
      signalPassFailure();
      return dropped = x;
    }
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(x);
    return dropped = tfm::DropoutOp::create(
               builder, x.getLoc(), x,
               tfm::DropoutAttr::get(builder.getContext(),
                                     builder.getF64FloatAttr(dropout), site));
  }

  /// The first place of a layer after those that drop already.
  int64_t takeSite(Block &layer) {
    auto [place, isNew] = nextSite.try_emplace(&layer, 0);
    if (isNew)
      for (auto op : layer.getOps<tfm::DropoutOp>())
        place->second = std::max(place->second, op.getMask().getSite() + 1);
    return place->second++;
  }

  void insertAdapter(tfm::LinearOp linear, tfm::ParamOp param) {
    OpBuilder builder(linear);
    builder.setInsertionPointAfter(linear);
    Location loc = linear.getLoc();
    RankedTensorType weight = param.getTensorType();
    // Adapters are not quantised with the weight.
    Type element =
        cast<RankedTensorType>(linear.getX().getType()).getElementType();
    Value a = addFactor(
        builder, param, "lora_A",
        RankedTensorType::get({rank, weight.getDimSize(1)}, element),
        "kaiming_uniform");
    Value b = addFactor(
        builder, param, "lora_B",
        RankedTensorType::get({weight.getDimSize(0), rank}, element), "zeros");
    Value u = tfm::LinearOp::create(builder, loc,
                                    dropSome(builder, linear.getX()), a);
    Value v = tfm::LinearOp::create(builder, loc, u, b);
    Value scaled =
        tfm::ScaleOp::create(builder, loc, v, builder.getF64FloatAttr(scale));
    auto sum = tfm::AddOp::create(builder, loc, linear.getY(), scaled);
    linear.getY().replaceAllUsesExcept(sum.getY(), sum);
    ++numAdapters;
  }

  llvm::DenseMap<Value, Value> droppedInputs;
  llvm::DenseMap<Block *, int64_t> nextSite; ///< by layer
};
} // namespace
