//===- TilesEmitter.h - Text of kernels with tiles in shared memory *- C++
//-*-===//
#pragma once

#include "compiler/Target/Cuda/Families/Combiner.h"
#include "compiler/Target/Cuda/Families/Emitter.h"
#include "compiler/Target/Cuda/Families/TilesPlan.h"

namespace fsdpq::cuda {

class TilesEmitter : public Emitter {
public:
  using Emitter::Emitter;

private:
  std::string describe() override;
  LogicalResult plan() override;
  LogicalResult emitTile(Operation *op) override;
  void beforeScalar(const Access &access) override;
  std::optional<std::string> getKept(Value tile,
                                     ArrayRef<std::string> index) override;
  std::string getLeader() override { return "lane == 0"; }
  void enterLoop(Operation *loop) override;
  void leaveLoop(Operation *loop) override;
  void enterBranch() override { branches.push_back({pending, {}}); }
  void nextBranch() override;
  void leaveBranches() override;
  LogicalResult beginCarried(scf::ForOp loop,
                             ArrayRef<unsigned> tiles) override;
  LogicalResult assignCarried(scf::ForOp loop,
                              ArrayRef<unsigned> tiles) override;
  void emitPrologue(Text &prologue) override;
  std::string getDeclarations() override;

  /// What threads did since the last barrier that others must not overtake.
  struct Pending {
    bool reads = false, writes = false;
  };
  void before(bool reads, bool writes);
  void barrier();
  bool isShared(Value memref) {
    return isWritten(memref) && readBack.contains(memref);
  }

  std::string getBuffer(Value tile) {
    return "tile" + std::to_string(*places.getPlace(tile));
  }
  /// Opens a loop of the block over `count` numbers; gives the number's name.
  std::string openShared(int64_t count);
  LogicalResult emitCopy(Value from, Value to);
  LogicalResult emitLoad(kern::LoadOp load);
  LogicalResult emitStore(kern::StoreOp store);
  LogicalResult emitExtract(tensor::ExtractOp extract);
  LogicalResult emitElementwise(linalg::GenericOp op);
  LogicalResult emitReduction(linalg::GenericOp op);
  LogicalResult emitByThreads(linalg::GenericOp op,
                              ArrayRef<unsigned> parallel);
  LogicalResult emitByWarps(linalg::GenericOp op, ArrayRef<unsigned> parallel,
                            ArrayRef<Combiner> combiners);
  bool isComputedFromMemory(Value tile);
  bool readsRowsOfMemory(linalg::GenericOp op);
  std::string getTarget(Value result, ArrayRef<std::string> dims,
                        linalg::GenericOp op);

  TilesPlan places;
  llvm::DenseSet<Value> readBack;
  Pending pending;
  SmallVector<Pending> loops;
  SmallVector<std::pair<Pending, Pending>>
      branches; ///< before; after the first
};

} // namespace fsdpq::cuda
