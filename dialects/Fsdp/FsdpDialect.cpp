#include "dialects/Fsdp/Fsdp.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdpq::fsdp;

#include "dialects/Fsdp/FsdpDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Fsdp/FsdpAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Fsdp/FsdpTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Fsdp/FsdpOps.cpp.inc"

void FsdpDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Fsdp/FsdpAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Fsdp/FsdpTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Fsdp/FsdpOps.cpp.inc"
      >();
}

LogicalResult MeshOp::verify() {
  if (getRanks() < 1 || getRanks() > (int64_t(1) << 20))
    return emitOpError("has ") << getRanks() << " ranks";
  if (getNumShards() < 1 || getRanks() % getNumShards() != 0)
    return emitOpError("has ") << getRanks() << " ranks, which "
                               << getNumShards() << " shards do not divide";
  return success();
}

MeshOp MeshOp::of(Operation *architecture) {
  for (Operation &op : architecture->getRegion(0).front())
    if (auto mesh = dyn_cast<MeshOp>(op))
      return mesh;
  return {};
}

LogicalResult UnitOp::verifySymbolUses(SymbolTableCollection &tables) {
  for (auto symbol : getParams().getAsRange<SymbolRefAttr>())
    if (!tables.lookupNearestSymbolFrom(*this, symbol))
      return emitOpError("holds ") << symbol << ", which does not exist";
  if (!getParts())
    return success();
  int64_t end = 0;
  for (auto part : getParts()->getAsRange<PartAttr>()) {
    if (!llvm::is_contained(getParams(), part.getParam()))
      return emitOpError("has a part of ")
             << part.getParam() << ", which is no member";
    if (part.getOffset() < end)
      return emitOpError("has overlapping parts at byte ") << part.getOffset();
    end = part.getOffset() + part.getBytes();
  }
  if (!getBytes() || static_cast<int64_t>(*getBytes()) < end)
    return emitOpError("has parts up to byte ")
           << end << " and is " << getBytes().value_or(0) << " bytes long";
  return success();
}

static LogicalResult verifyUnit(Operation *op, FlatSymbolRefAttr unit,
                                SymbolTableCollection &tables) {
  if (tables.lookupNearestSymbolFrom<UnitOp>(op, unit))
    return success();
  return op->emitOpError("names ") << unit << ", which is no unit";
}

LogicalResult AllGatherStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUnit(*this, getUnitAttr(), tables);
}
LogicalResult LocalOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUnit(*this, getUnitAttr(), tables);
}
LogicalResult KeptOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUnit(*this, getUnitAttr(), tables);
}
LogicalResult GradientStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUnit(*this, getUnitAttr(), tables);
}
LogicalResult ReduceScatterStartOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUnit(*this, getUnitAttr(), tables);
}
LogicalResult ReduceSumsOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUnit(*this, getUnitAttr(), tables);
}
LogicalResult ReduceReplicasOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUnit(*this, getUnitAttr(), tables);
}
LogicalResult WholeOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUnit(*this, getUnitAttr(), tables);
}
LogicalResult StoreOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyUnit(*this, getUnitAttr(), tables);
}
LogicalResult FlatOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (!llvm::is_contained({"data", "gradient", "state0", "state1"}, getBuffer()))
    return emitOpError("has no buffer \"") << getBuffer() << "\"";
  return verifyUnit(*this, getUnitAttr(), tables);
}
