//===- AssignLayout.cpp - fsdp-assign-layout ------------------------------===//

#include "compiler/Shard/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "llvm/Support/MathExtras.h"

namespace fsdpq {
#define GEN_PASS_DEF_FSDPASSIGNLAYOUT
#include "compiler/Shard/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

/// Parts start at a cache line.
static constexpr int64_t partAlignment = 64;

namespace {
struct AssignLayoutPass : fsdpq::impl::FsdpAssignLayoutBase<AssignLayoutPass> {
  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      fsdp::MeshOp mesh = fsdp::MeshOp::of(architecture);
      if (!mesh)
        continue;
      findFollowers(architecture);
      for (auto unit : architecture.getBody().getOps<fsdp::UnitOp>())
        if (failed(assign(unit, mesh.getNumShards())))
          return signalPassFailure();
    }
  }

private:
  /// Parameters that some use joins to the one before.
  void findFollowers(tfm::ArchitectureOp architecture) {
    predecessors.clear();
    auto record = [&](Operation *op, ArrayAttr params) {
      for (size_t i = 1; i < params.size(); ++i)
        predecessors[cast<SymbolRefAttr>(params[i]).getLeafReference()] =
            cast<SymbolRefAttr>(params[i - 1]).getLeafReference();
    };
    architecture.walk([&](tfm::UseOp use) { record(use, use.getParams()); });
  }

  LogicalResult assign(fsdp::UnitOp unit, int64_t shards) {
    Builder builder(&getContext());
    SmallVector<Attribute> parts;
    int64_t end = 0;
    StringAttr previous;
    auto add = [&](FlatSymbolRefAttr param, StringRef name, int64_t bytes,
                   bool follows) {
      if (!follows)
        end = llvm::alignTo(end, partAlignment);
      parts.push_back(fsdp::PartAttr::get(&getContext(), param,
                                          builder.getStringAttr(name), end,
                                          bytes));
      end += bytes;
    };
    for (auto symbol : unit.getParams().getAsRange<FlatSymbolRefAttr>()) {
      auto param = SymbolTable::lookupNearestSymbolFrom<tfm::ParamOp>(unit, symbol);
      RankedTensorType type = param.getTensorType();
      bool follows = predecessors.lookup(symbol.getAttr()) == previous && previous;
      if (predecessors.contains(symbol.getAttr()) && !follows)
        return unit.emitError("[FSDPQ-0310] ")
               << symbol << " is used together with @"
               << predecessors[symbol.getAttr()].getValue()
               << " but does not follow it in the unit";
      if (auto format = qt::getBlockFormat(type.getElementType())) {
        // Quantised parameters are dequantised one by one; their arrays need no
        // neighbours.
        for (qt::StoredPart part :
             qt::getStoredParts(*format, type.getNumElements()))
          add(symbol, part.name, part.bytes(), /*follows=*/false);
      } else {
        add(symbol, "data",
            type.getNumElements() * type.getElementTypeBitWidth() / 8, follows);
      }
      previous = symbol.getAttr();
    }
    unit.setPartsAttr(builder.getArrayAttr(parts));
    unit.setBytes(llvm::alignTo(end, shards * fsdp::shardAlignment));
    remarkAnalysis(unit.getLoc(), RemarkId::FormUnit)
        << ("@" + unit.getSymName() + " takes " + formatBytes(*unit.getBytes()) +
            " a layer")
               .str()
        << remark::metric("layers",
                          unit.getLayers() ? unit.getLayers()->size() : 1)
        << remark::metric("bytes", (int64_t)*unit.getBytes());
    return success();
  }

  llvm::DenseMap<StringAttr, StringAttr> predecessors;
};
} // namespace
