//===- Bufferize.cpp - Tiles in memory ------------------------------------===//

#include "compiler/Target/Cpu/Lowering.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fsdpq;

/// The view without the reshapes on top of it, which keep the address.
static Value stripReshapes(Value view) {
  while (Operation *op = view.getDefiningOp()) {
    if (!isa<memref::ExpandShapeOp, memref::CollapseShapeOp, memref::CastOp>(
            op))
      break;
    view = op->getOperand(0);
  }
  return view;
}

/// Makes what a loop carries end up in the buffer that it started in. Where the
/// body already computes it there, nothing is copied.
static void carryInPlace(scf::ForOp loop) {
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  OpBuilder builder(yield);
  for (OpOperand &operand : yield->getOpOperands()) {
    Value carried = loop.getRegionIterArg(operand.getOperandNumber());
    if (!isa<TensorType>(carried.getType()) || operand.get() == carried)
      continue;
    auto moved = bufferization::MaterializeInDestinationOp::create(
        builder, yield.getLoc(), carried.getType(), operand.get(), carried);
    operand.set(moved.getResult());
  }
}

LogicalResult cpu::bufferizeKernel(func::FuncOp function) {
  function.walk(carryInPlace);
  bufferization::OneShotBufferizationOptions options;
  options.bufferAlignment = 64;
  bufferization::BufferizationState state;
  if (failed(bufferization::runOneShotBufferize(function, options, state)))
    return failure();
  // A tile computed in place is "copied" to where it already is.
  function.walk([](memref::CopyOp copy) {
    if (stripReshapes(copy.getSource()) == stripReshapes(copy.getTarget()))
      copy.erase();
  });
  return success();
}

bool cpu::hasUnitStride(Value memref) {
  int64_t offset;
  SmallVector<int64_t> strides;
  auto type = cast<MemRefType>(memref.getType());
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         !strides.empty() && strides.back() == 1;
}

LogicalResult cpu::promoteAllocations(func::FuncOp function) {
  constexpr int64_t frameLimit = 256 << 10;
  int64_t frame = 0;
  SmallVector<memref::AllocOp> allocations;
  function.walk([&](memref::AllocOp op) { allocations.push_back(op); });
  OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
  for (memref::AllocOp op : allocations) {
    MemRefType type = op.getType();
    if (!type.hasStaticShape())
      return op.emitOpError("kernel @")
             << function.getSymName() << " needs a temporary tile of dynamic "
             << "shape: " << type;
    int64_t bytes = type.getNumElements() *
                    llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    frame += llvm::alignTo(bytes, 64);
    auto slot = memref::AllocaOp::create(builder, op.getLoc(), type,
                                         builder.getI64IntegerAttr(64));
    op.replaceAllUsesWith(slot.getResult());
    op.erase();
  }
  if (frame > frameLimit)
    return function.emitError("kernel @")
           << function.getSymName().drop_back(StringRef(".items").size())
           << " needs " << frame << " bytes of temporary tiles, the limit is "
           << frameLimit << "; loop over smaller tiles";
  return success();
}
