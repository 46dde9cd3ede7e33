//===- LowerToLoops.cpp - Loops for LLVM to vectorise ---------------------===//

#include "compiler/Target/Cpu/Lowering.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fsdpq;

LogicalResult cpu::lowerToLoops(func::FuncOp function) {
  SmallVector<memref::CopyOp> copies;
  function.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  OpBuilder builder(function.getContext());
  for (memref::CopyOp copy : copies) {
    builder.setInsertionPoint(copy);
    linalg::makeMemRefCopyOp(builder, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
    copy.erase();
  }

  SmallVector<linalg::LinalgOp> ops;
  function.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  IRRewriter rewriter(function.getContext());
  for (linalg::LinalgOp op : ops) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::linalgOpToLoops(rewriter, op)))
      return op.emitOpError("cannot be lowered to loops");
    rewriter.eraseOp(op);
  }
  return success();
}
