//===- ChunkLoss.cpp - tfm-chunk-loss -------------------------------------===//

#include "compiler/Grad/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMCHUNKLOSS
#include "compiler/Grad/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

/// `type` with `rows` where its size is named C.
static Type withChunk(Type type, int64_t rows) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return type;
  SmallVector<int64_t> shape(tensor.getShape());
  for (int64_t dim = 0; dim < tensor.getRank(); ++dim)
    if (tfm::getDimName(tensor, dim) == tfm::chunkDim)
      shape[dim] = rows;
  return RankedTensorType::get(shape, tensor.getElementType(),
                               tensor.getEncoding());
}

static void setChunk(tfm::FuncOp function, int64_t rows) {
  for (BlockArgument argument : function.getBody().getArguments())
    argument.setType(withChunk(argument.getType(), rows));
  function.walk([&](Operation *op) {
    for (OpResult result : op->getResults())
      result.setType(withChunk(result.getType(), rows));
  });
  auto convert = [&](ArrayRef<Type> types) {
    return llvm::map_to_vector(types,
                               [&](Type type) { return withChunk(type, rows); });
  };
  function.setFunctionType(FunctionType::get(function.getContext(),
                                             convert(function.getArgumentTypes()),
                                             convert(function.getResultTypes())));
}

namespace {
struct ChunkLossPass : fsdpq::impl::TfmChunkLossBase<ChunkLossPass> {
  using TfmChunkLossBase::TfmChunkLossBase;

  void runOnOperation() override {
    if (rows < 128 || rows % 128 != 0) {
      getOperation().emitError("[FSDPQ-0211] rows = ")
          << rows.getValue() << ": a positive multiple of 128 is needed";
      return signalPassFailure();
    }
    getOperation().walk([&](tfm::ChunkLoopOp loop) {
      auto capacity = cast<RankedTensorType>(loop.getSliced().front().getType())
                          .getDimSize(0);
      if (capacity > rows && capacity % 128 != 0) {
        loop.emitError("[FSDPQ-0212] ")
            << capacity << " rows cannot be cut into chunks of multiples of 128";
        return signalPassFailure();
      }
      // Chunks cover the buffers exactly.
      int64_t chunk = std::min<int64_t>(rows, capacity);
      while (capacity % chunk != 0)
        chunk -= 128;
      loop.setChunk(chunk);
      remarkAnalysis(loop.getLoc(), RemarkId::ChunkLoss)
          << "the head runs chunk by chunk"
          << remark::metric("chunks", capacity / chunk)
          << remark::metric("rows", chunk);
      setChunk(SymbolTable::lookupNearestSymbolFrom<tfm::FuncOp>(
                   loop, loop.getBodyAttr()),
               chunk);
    });
  }
};
} // namespace
