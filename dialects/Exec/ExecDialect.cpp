#include "dialects/Exec/Exec.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::exec;

#include "dialects/Exec/ExecDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Exec/ExecTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Exec/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Exec/ExecTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Exec/ExecOps.cpp.inc"
      >();
}

LogicalResult AllocOp::verify() {
  if (static_cast<int64_t>(getBytes()) <= 0)
    return emitOpError("has ") << getBytes() << " bytes";
  return success();
}

/// Groups and streams are those that plan files have numbers for.
template <typename OpType> static LogicalResult verifyCollective(OpType op) {
  if (!llvm::is_contained({worldGroup, shardGroup, replicaGroup}, op.getGroup()))
    return op.emitOpError("has the group \"")
           << op.getGroup() << "\": world, shard or replica is needed";
  if ((int64_t)op.getStream() < 0 || (int64_t)op.getStream() > reduceStream)
    return op.emitOpError("runs on stream ")
           << op.getStream() << " of " << reduceStream + 1;
  if ((int64_t)op.getEvent() < 0)
    return op.emitOpError("records event ") << op.getEvent();
  return success();
}
LogicalResult AllGatherOp::verify() { return verifyCollective(*this); }
LogicalResult ReduceScatterOp::verify() {
  if ((int64_t)getRanges() < 1)
    return emitOpError("has ") << getRanges() << " ranges";
  return verifyCollective(*this);
}
LogicalResult AllReduceOp::verify() { return verifyCollective(*this); }

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto plan = (*this)->getParentOfType<PlanOp>();
  auto kernel =
      plan ? dyn_cast_or_null<kern::FuncOp>(tables.lookupSymbolIn(
                 plan, getKernelAttr().getAttr()))
           : kern::FuncOp();
  if (!kernel)
    return emitOpError("launches ") << getKernelAttr() << ", which is no kernel";
  size_t given = getReads().size() + getWrites().size() + getExtents().size() +
                 getScalars().size();
  if (given != kernel.getArguments().size())
    return emitOpError("gives ") << given << " arguments to " << getKernelAttr()
                                 << ", which takes "
                                 << kernel.getArguments().size();
  return success();
}
