//===- RowsChoice.cpp - Threads for kernels with tiles in registers -------===//

#include "compiler/Target/Cuda/Families/Rows.h"
#include "compiler/Target/Cuda/Families/RowsPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

/// Threads of a block whose items are smaller.
static constexpr int64_t blockThreads = 128;

/// Whether a scalar that is the same for all items costs more than a few
/// instructions: then blocks go on to further items.
static bool hasCostlyInvariants(kern::FuncOp kernel) {
  Block &body = kernel.getBody().front();
  llvm::DenseSet<Value> varying = {kernel.getItem()};
  bool isCostly = false;
  for (Operation &op : body) {
    bool varies = op.getNumRegions() != 0 ||
                  isa<kern::LoadOp, kern::StoreOp>(op) ||
                  llvm::any_of(op.getOperands(),
                               [&](Value v) { return varying.contains(v); });
    if (varies)
      varying.insert(op.result_begin(), op.result_end());
    else
      isCostly |= isa<arith::DivFOp, math::SqrtOp>(op);
  }
  return isCostly;
}

/// Whether iterations of the kernel's loops can be shared out among groups that
/// do not wait for each other; then gives their number.
static std::optional<int64_t>
getIndependentIterations(kern::FuncOp kernel, const RowsAnalysis &analysis) {
  SmallVector<scf::ForOp> loops(kernel.getBody().getOps<scf::ForOp>());
  if (loops.empty())
    return std::nullopt;
  int64_t fewest = INT64_MAX;
  llvm::DenseMap<Value, scf::ForOp> user; // of memrefs that are written
  SmallVector<Access> accesses = getAccesses(kernel);
  for (scf::ForOp loop : loops) {
    auto trips = getTripCount(loop);
    if (!trips || *trips < 2 || loop.getNumResults() != 0)
      return std::nullopt;
    fewest = std::min(fewest, *trips);
    SmallVector<Access> inside = getAccesses(loop);
    for (const Access &a : inside)
      for (const Access &b : inside)
        if (a.memref == b.memref && (a.isWrite || b.isWrite) &&
            !areDisjointAcross(loop, a, b))
          return std::nullopt;
  }
  auto getLoop = [&](Operation *op) -> scf::ForOp {
    for (scf::ForOp loop : loops)
      if (loop->isAncestor(op))
        return loop;
    return {};
  };
  // What a loop writes, nothing else touches; nothing is computed outside.
  for (const Access &write : accesses) {
    if (!write.isWrite)
      continue;
    scf::ForOp loop = getLoop(write.op);
    for (const Access &other : accesses)
      if (other.memref == write.memref && (!loop || getLoop(other.op) != loop))
        return std::nullopt;
  }
  for (const Consumer &consumer : analysis.consumers)
    if (!getLoop(consumer.at))
      return std::nullopt;
  return fewest;
}

FailureOr<kern::EmissionAttr> cuda::chooseRows(kern::FuncOp kernel,
                                               Decline &declined) {
  auto analysis = RowsAnalysis::of(kernel, declined);
  if (failed(analysis))
    return failure();
  auto get = [&](int64_t threads, int64_t group, int64_t teams) {
    // Enough blocks to fill each multiprocessor.
    bool isPersistent = group != 1 && hasCostlyInvariants(kernel);
    int64_t blocks = isPersistent ? std::max<int64_t>(1, 2048 / threads) : 0;
    return kern::EmissionAttr::get(kernel.getContext(), "rows", threads, group,
                                   teams, 0, blocks);
  };
  // The tiles that most of the work is on.
  int64_t elements = 0;
  TileClass main;
  for (auto &[count, tileClass] : analysis->classes)
    if (std::pair(tileClass.isInLoop, count) >=
        std::pair(main.isInLoop, elements)) {
      elements = count;
      main = tileClass;
    }
  if (elements == 0)
    return get(blockThreads, 1, 1);

  int64_t vectors = elements / main.vector;
  if (auto iterations = getIndependentIterations(kernel, *analysis);
      iterations && vectors <= 128) {
    int64_t group = std::min<int64_t>(32, llvm::PowerOf2Ceil(vectors));
    int64_t most = 256 / group;
    int64_t rounds = llvm::divideCeilSigned(*iterations, most);
    int64_t teams = llvm::divideCeilSigned(*iterations, rounds);
    int64_t items = std::max<int64_t>(1, blockThreads / (group * teams));
    return get(group * teams * items, group, teams);
  }
  if (elements <= 512) {
    int64_t group = std::min<int64_t>(32, llvm::PowerOf2Ceil(vectors));
    // Items that take long are spread over all multiprocessors.
    return get(main.isInLoop ? 32 : blockThreads, group, 1);
  }
  // Up to 128 bytes of reads on the way a thread, and 16 elements.
  int64_t perThread = std::clamp<int64_t>(
      128 / std::max<int64_t>(main.bytes, 1), main.vector, 16);
  if (main.isInLoop)
    perThread = std::max(main.vector, perThread / 2);
  // Several blocks a multiprocessor, so that some read while others compute.
  // What one loop reads can be read in many rounds; what several do is held.
  int64_t loops = llvm::count_if(analysis->consumers, [&](const Consumer &c) {
    return c.elements == elements;
  });
  int64_t most = loops > 1 ? 512 : 256;
  int64_t rounds =
      std::max(perThread / main.vector, llvm::divideCeilSigned(vectors, most));
  int64_t group = llvm::alignTo(llvm::divideCeilSigned(vectors, rounds), 32);
  return get(group, group, 1);
}
