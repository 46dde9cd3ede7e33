//===- RowsPlan.cpp - Which loops read which tiles ------------------------===//

#include "compiler/Target/Cuda/Families/RowsPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

Value cuda::skipReshapes(Value tile) {
  while (auto *op = tile.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      break;
    tile = op->getOperand(0);
  }
  return tile;
}

static int64_t countElements(Value tile) {
  return getTileType(tile).getNumElements();
}

/// Whether `op` reduces to scalars.
static bool isReduction(linalg::GenericOp op) {
  return op.getNumReductionLoops() != 0;
}

namespace {
class Analyser {
public:
  Analyser(kern::FuncOp kernel, Decline &declined)
      : kernel(kernel), declined(declined), accesses(getAccesses(kernel)) {}

  FailureOr<RowsAnalysis> run();

private:
  LogicalResult decline(Operation *op, const Twine &reason) {
    if (!declined.op)
      declined = {op, reason.str()};
    return failure();
  }
  LogicalResult findConsumers(Block &block);
  bool canJoin(const Consumer &group, kern::StoreOp store);
  LogicalResult addReduction(linalg::GenericOp op);
  LogicalResult addCarried(scf::ForOp loop);
  void forwardStores();
  LogicalResult findUses(unsigned consumer, Value tile, bool isOwned);
  LogicalResult checkLateReads();
  bool meetsStore(const TileUse &use);
  void classify();

  kern::FuncOp kernel;
  Decline &declined;
  SmallVector<Access> accesses;
  RowsAnalysis result;
  llvm::DenseSet<std::pair<Value, unsigned>> seen; ///< by the consumer at hand
};
} // namespace

const Consumer *RowsAnalysis::getConsumer(Operation *at) const {
  for (const Consumer &consumer : consumers)
    if (consumer.at == at || llvm::is_contained(consumer.stores, at))
      return &consumer;
  return nullptr;
}

/// Whether `store` may be done in one loop with the stores of `group`, at its
/// own place.
bool Analyser::canJoin(const Consumer &group, kern::StoreOp store) {
  if (group.stores.empty() || group.at->getBlock() != store->getBlock() ||
      group.elements != countElements(store.getTile()))
    return false;
  auto touchesGroup = [&](const Access &access) {
    return llvm::any_of(group.stores, [&](kern::StoreOp other) {
      return other.getDest() == access.memref;
    });
  };
  for (Operation *op = group.stores.front()->getNextNode(); op != store;
       op = op->getNextNode()) {
    if (llvm::is_contained(group.stores, op))
      continue;
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (isReduction(generic))
        return false;
      continue;
    }
    auto access = Access::of(op);
    if (access && isa<kern::LoadOp>(op) && !touchesGroup(*access))
      continue;
    if (access || op->getNumRegions() != 0 || isa<tensor::ExtractOp>(op))
      return false;
  }
  Access access = *Access::of(store);
  return llvm::all_of(group.stores, [&](kern::StoreOp other) {
    Access before = *Access::of(other);
    return before.memref != access.memref || areElementwise(before, access) ||
           areDisjoint(before, access);
  });
}

LogicalResult Analyser::addReduction(linalg::GenericOp op) {
  if (op.getNumParallelLoops() != 0)
    return decline(op, "reduces to a tile");
  Consumer consumer;
  consumer.at = op;
  consumer.elements = 1;
  for (int64_t size : op.getStaticLoopRanges())
    consumer.elements *= size;
  consumer.tiles.assign(op.getResults().begin(), op.getResults().end());
  result.consumers.push_back(consumer);
  return success();
}

LogicalResult Analyser::addCarried(scf::ForOp loop) {
  Consumer begin, next;
  begin.at = loop;
  next.at = loop.getBody()->getTerminator();
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    if (!isa<RankedTensorType>(argument.getType()))
      continue;
    begin.tiles.push_back(loop.getInitArgs()[number]);
    next.tiles.push_back(loop.getYieldedValues()[number]);
    int64_t elements = countElements(argument);
    if (begin.elements != 0 && begin.elements != elements)
      return decline(loop, "carries tiles of different sizes");
    begin.elements = next.elements = elements;
  }
  if (begin.elements == 0)
    return success();
  result.consumers.push_back(begin);
  result.consumers.push_back(next);
  return success();
}

LogicalResult Analyser::findConsumers(Block &block) {
  for (Operation &op : block) {
    if (auto store = dyn_cast<kern::StoreOp>(op)) {
      if (!result.consumers.empty() &&
          canJoin(result.consumers.back(), store)) {
        Consumer &group = result.consumers.back();
        group.at = store;
        group.stores.push_back(store);
        group.tiles.push_back(store.getTile());
        continue;
      }
      Consumer consumer;
      consumer.at = store;
      consumer.stores.push_back(store);
      consumer.tiles.push_back(store.getTile());
      consumer.elements = countElements(store.getTile());
      if (!Access::of(store)->isContiguous())
        return decline(store, "stores a tile with gaps");
      result.consumers.push_back(consumer);
      continue;
    }
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (isReduction(generic) && failed(addReduction(generic)))
        return failure();
      continue;
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      Consumer consumer;
      consumer.at = extract;
      consumer.tiles.push_back(extract.getTensor());
      result.consumers.push_back(consumer);
      continue;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && failed(addCarried(loop)))
      return failure();
    if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op))
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          if (failed(findConsumers(inner)))
            return failure();
  }
  return success();
}

/// A load of what was just stored gives the tile that was stored.
void Analyser::forwardStores() {
  for (const Access &access : accesses) {
    auto load = dyn_cast<kern::LoadOp>(access.op);
    if (!load)
      continue;
    for (Operation *op = load->getPrevNode(); op; op = op->getPrevNode()) {
      auto store = dyn_cast<kern::StoreOp>(op);
      if (store && store.getDest() == load.getSource()) {
        bool isSame =
            store.getTile().getType() == load.getTile().getType() &&
            llvm::all_of(llvm::zip(store.getIndices(), load.getIndices()),
                         [](auto pair) {
                           auto [a, b] = pair;
                           return Linear::of(a).minus(Linear::of(b)) == 0;
                         });
        if (isSame)
          result.forwarded[load.getTile()] = store.getTile();
        break;
      }
      bool writes = llvm::any_of(getAccesses(op), [&](const Access &other) {
        return other.isWrite && other.memref == load.getSource();
      });
      if (writes)
        break;
    }
  }
}

/// Notes what `consumer` reads for `tile`.
LogicalResult Analyser::findUses(unsigned consumer, Value tile, bool isOwned) {
  if (!isa<RankedTensorType>(tile.getType()) ||
      !seen.insert({tile, isOwned}).second)
    return success();
  if (auto argument = dyn_cast<BlockArgument>(tile)) {
    if (!isOwned)
      return decline(argument.getOwner()->getParentOp(),
                     "carries a tile whose elements other threads read");
    return success();
  }
  Operation *op = tile.getDefiningOp();
  if (auto load = dyn_cast<kern::LoadOp>(op)) {
    result.uses.push_back(
        {load, consumer, isOwned && Access::of(load)->isContiguous()});
    return success();
  }
  if (isa<tensor::EmptyOp, arith::ConstantOp>(op))
    return success();
  if (isa<scf::ForOp>(op)) {
    if (!isOwned)
      return decline(op, "carries a tile whose elements other threads read");
    return success();
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return findUses(consumer, op->getOperand(0), isOwned);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return decline(op, "gives a tile in a way that is not known");
  unsigned number = cast<OpResult>(tile).getResultNumber();
  bool reduces = isReduction(generic);
  // The scalars of a reduction are there already, but to itself.
  if (reduces && result.consumers[consumer].at != op)
    return success();
  AffineMap output =
      generic.getMatchingIndexingMap(generic.getDpsInitOperand(number));
  if (!reduces && !output.isPermutation())
    return decline(op, "does not write each element once");
  for (OpOperand &operand : generic->getOpOperands()) {
    if (!readsOperand(generic, operand, number))
      continue;
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    bool staysOwned =
        isOwned && map.isIdentity() && (reduces || output.isIdentity());
    if (failed(findUses(consumer, operand.get(), staysOwned)))
      return failure();
  }
  return success();
}

/// Whether a store may come between the load and where the use reads it, and
/// may change what it reads.
bool Analyser::meetsStore(const TileUse &use) {
  kern::LoadOp load = use.load;
  Access read = *Access::of(load);
  const Consumer &consumer = result.consumers[use.consumer];
  Block *block = load->getBlock();
  Operation *reader = block->findAncestorOpInBlock(*consumer.at);
  for (const Access &write : accesses) {
    if (!write.isWrite || write.memref != read.memref)
      continue;
    Operation *writer = block->findAncestorOpInBlock(*write.op);
    if (!writer || writer->isBeforeInBlock(load) ||
        (reader != writer && reader->isBeforeInBlock(writer)))
      continue;
    if (areDisjoint(read, write))
      continue;
    // Within a loop over elements each is read before it is written.
    if (llvm::is_contained(consumer.stores, write.op) && use.isOwned &&
        areElementwise(read, write))
      continue;
    return true;
  }
  return false;
}

LogicalResult Analyser::checkLateReads() {
  for (TileUse &use : result.uses) {
    if (!meetsStore(use))
      continue;
    if (!use.isOwned)
      return decline(use.load, "is read after a store may have changed it");
    result.early.insert(use.load.getTile());
  }
  return success();
}

void Analyser::classify() {
  auto note = [&](const Access &access, int64_t elements, bool isRead) {
    int64_t bytes = getBytes(access.getType().getElementType());
    TileClass &tileClass = result.classes[elements];
    int64_t vector = std::gcd(access.getAlignment(8), elements);
    vector = std::min<int64_t>(vector & -vector, 8);
    if (tileClass.inputs++ == 0)
      tileClass.vector = vector;
    tileClass.vector = std::min(tileClass.vector, vector);
    if (isRead)
      tileClass.bytes += bytes;
  };
  for (const Consumer &consumer : result.consumers) {
    if (consumer.elements == 0)
      continue;
    TileClass &tileClass = result.classes[consumer.elements];
    for (Operation *parent = consumer.at->getParentOp(); parent != kernel;
         parent = parent->getParentOp())
      tileClass.isInLoop |= isa<scf::ForOp, scf::WhileOp>(parent);
    for (kern::StoreOp store : consumer.stores)
      note(*Access::of(store), consumer.elements, false);
  }
  llvm::DenseSet<std::pair<Operation *, int64_t>> noted;
  for (TileUse &use : result.uses) {
    int64_t elements = result.consumers[use.consumer].elements;
    if (use.isOwned && noted.insert({use.load, elements}).second)
      note(*Access::of(use.load), elements, true);
  }
  // No access moves more than 16 bytes: more neighbours gain nothing.
  for (auto &[elements, tileClass] : result.classes) {
    int64_t smallest = 8;
    auto consider = [&](const Access &access) {
      smallest =
          std::min(smallest, getBytes(access.getType().getElementType()));
    };
    for (TileUse &use : result.uses)
      if (use.isOwned && result.consumers[use.consumer].elements == elements)
        consider(*Access::of(use.load));
    for (const Consumer &consumer : result.consumers)
      if (consumer.elements == elements)
        for (kern::StoreOp store : consumer.stores)
          consider(*Access::of(store));
    tileClass.vector = std::min(tileClass.vector, 16 / smallest);
  }
}

FailureOr<RowsAnalysis> Analyser::run() {
  if (failed(findConsumers(kernel.getBody().front())))
    return failure();
  forwardStores();
  for (unsigned number = 0; number < result.consumers.size(); ++number) {
    seen.clear();
    for (Value tile : result.consumers[number].tiles)
      if (failed(
              findUses(number, tile, result.consumers[number].elements != 0)))
        return failure();
  }
  if (failed(checkLateReads()))
    return failure();
  classify();
  return result;
}

FailureOr<RowsAnalysis> RowsAnalysis::of(kern::FuncOp kernel,
                                         Decline &declined) {
  return Analyser(kernel, declined).run();
}
