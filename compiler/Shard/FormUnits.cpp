//===- FormUnits.cpp - fsdp-form-units ------------------------------------===//

#include "compiler/Shard/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace fsdpq {
#define GEN_PASS_DEF_FSDPFORMUNITS
#include "compiler/Shard/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
/// What the parameters of one unit have in common.
struct UnitKey {
  bool trainable;
  bool perLayer;
  bool afterMixer;                ///< of a layer's second half, if it is cut
  SmallVector<int32_t> layers;    ///< of per-layer parameters
  SmallVector<StringRef> users;   ///< functions, of the others

  bool operator<(const UnitKey &other) const {
    return std::tie(trainable, perLayer, afterMixer, layers, users) <
           std::tie(other.trainable, other.perLayer, other.afterMixer,
                    other.layers, other.users);
  }
};

struct FormUnitsPass : fsdpq::impl::FsdpFormUnitsBase<FormUnitsPass> {
  using FsdpFormUnitsBase::FsdpFormUnitsBase;

  void runOnOperation() override {
    if (ranks < 1 || shards < 0 || (shards > 0 && ranks % shards != 0)) {
      getOperation().emitError("[FSDPQ-0300] ranks = ")
          << ranks.getValue() << ", shards = " << shards.getValue()
          << ": shards must divide ranks";
      return signalPassFailure();
    }
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>())
      if (failed(form(architecture)))
        return signalPassFailure();
  }

private:
  /// The layers that each layer function stands for.
  llvm::DenseMap<Operation *, llvm::SmallSetVector<int32_t, 8>>
  findLayers(tfm::ArchitectureOp architecture) {
    llvm::DenseMap<Operation *, llvm::SmallSetVector<int32_t, 8>> result;
    auto record = [&](Operation *op, ArrayAttr kinds, ArrayRef<int32_t> layers) {
      for (auto [number, kind] : llvm::enumerate(layers))
        result[SymbolTable::lookupNearestSymbolFrom(
                   op, cast<SymbolRefAttr>(kinds[kind]))]
            .insert(number);
    };
    forwardKinds.clear();
    architecture.walk([&](tfm::StackOp stack) {
      record(stack, stack.getKinds(), *stack.getLayers());
      for (auto kind : stack.getKinds().getAsRange<SymbolRefAttr>())
        forwardKinds.insert(SymbolTable::lookupNearestSymbolFrom(stack, kind));
    });
    architecture.walk([&](tfm::StackGradOp stack) {
      record(stack, stack.getKinds(), stack.getLayers());
    });
    return result;
  }

  /// Whether a layer uses the parameter only after its first sum: a layer's two
  /// halves (attention and MLP) each end by adding to what the layer carries on.
  /// Backward kinds, which have their own order, do not decide.
  bool isAfterMixer(Operation *function, tfm::ParamOp param) {
    if (!forwardKinds.contains(function))
      return true;
    auto layer = cast<tfm::LayerOp>(function);
    Block &body = layer.getBody().front();
    Operation *firstSum = nullptr;
    for (Operation &op : body)
      if (isa<tfm::AddOp>(op) &&
          llvm::is_contained(op.getOperands(), Value(body.getArgument(0)))) {
        firstSum = &op;
        break;
      }
    if (!firstSum)
      return true;
    for (auto use : body.getOps<tfm::UseOp>())
      if (llvm::any_of(use.getParams().getAsRange<SymbolRefAttr>(),
                       [&](SymbolRefAttr symbol) {
                         return symbol.getLeafReference() ==
                                param.getSymNameAttr();
                       }))
        for (Operation *user : use.getResult().getUsers())
          if (user->isBeforeInBlock(firstSum))
            return false;
    return true;
  }

  LogicalResult form(tfm::ArchitectureOp architecture) {
    auto layersOf = findLayers(architecture);
    // Parameters in the order of their first use, so that those used as one
    // stay together.
    llvm::MapVector<Operation *, llvm::SetVector<Operation *>> users;
    architecture.walk([&](tfm::UseOp use) {
      for (auto symbol : use.getParams().getAsRange<SymbolRefAttr>())
        users[SymbolTable::lookupNearestSymbolFrom(use, symbol)].insert(
            use->getParentOfType<FunctionOpInterface>());
    });

    std::map<UnitKey, SmallVector<tfm::ParamOp>> units;
    std::vector<const UnitKey *> order;
    for (auto &[op, functions] : users) {
      auto param = cast<tfm::ParamOp>(op);
      UnitKey key{param.getTrainable(), param.getPerLayer(), false, {}, {}};
      if (param.getPerLayer()) {
        key.afterMixer = split && !param.getTrainable() &&
                         llvm::all_of(functions, [&](Operation *function) {
                           return isAfterMixer(function, param);
                         });
        llvm::SmallSetVector<int32_t, 8> layers;
        for (Operation *function : functions)
          layers.insert(layersOf[function].begin(), layersOf[function].end());
        key.layers.assign(layers.begin(), layers.end());
        llvm::sort(key.layers);
        if (key.layers.empty())
          return param.emitError("[FSDPQ-0301] @")
                 << param.getSymName() << " is used by no layer of a stack";
      } else {
        for (Operation *function : functions)
          key.users.push_back(cast<FunctionOpInterface>(function).getName());
        llvm::sort(key.users);
      }
      auto [place, isNew] = units.try_emplace(key);
      if (isNew)
        order.push_back(&place->first);
      place->second.push_back(param);
    }

    OpBuilder builder(&getContext());
    builder.setInsertionPointToStart(&architecture.getBody().front());
    Operation *lastParam = nullptr;
    for (auto param : architecture.getBody().getOps<tfm::ParamOp>())
      lastParam = param;
    if (lastParam)
      builder.setInsertionPointAfter(lastParam);
    fsdp::MeshOp::create(
        builder, architecture.getLoc(), builder.getStringAttr("mesh"),
        builder.getI64IntegerAttr(ranks),
        shards > 0 && shards != ranks ? builder.getI64IntegerAttr(shards)
                                      : IntegerAttr(),
        deterministic ? builder.getUnitAttr() : UnitAttr());
    for (const UnitKey *key : order)
      createUnit(builder, architecture, *key, units[*key]);
    return success();
  }

  void createUnit(OpBuilder &builder, tfm::ArchitectureOp architecture,
                  const UnitKey &key, MutableArrayRef<tfm::ParamOp> params) {
    std::string stem = !key.perLayer ? params.front().getSymName().str()
                       : key.afterMixer ? "layers.mlp"
                       : split && !key.trainable ? "layers.attention"
                                                 : "layers";
    std::string base = stem + (key.trainable ? ".trained" : ".base");
    std::string name = base;
    for (unsigned i = 1; architecture.lookupSymbol(name); ++i)
      name = base + "." + std::to_string(i);
    SmallVector<Attribute> members;
    for (tfm::ParamOp param : params)
      members.push_back(FlatSymbolRefAttr::get(param.getSymNameAttr()));
    fsdp::UnitOp::create(
        builder, params.front().getLoc(), builder.getStringAttr(name),
        builder.getArrayAttr(members),
        key.perLayer ? builder.getDenseI32ArrayAttr(key.layers)
                     : DenseI32ArrayAttr(),
        key.trainable ? builder.getUnitAttr() : UnitAttr(), IntegerAttr(),
        ArrayAttr());
    ++numUnits;
  }

  llvm::SmallPtrSet<Operation *, 8> forwardKinds;
};
} // namespace
