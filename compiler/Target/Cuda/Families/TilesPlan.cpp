//===- TilesPlan.cpp - Which tiles live in shared memory, and where -------===//

#include "compiler/Target/Cuda/Families/TilesPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

/// Loads that are larger are read where they are.
static constexpr int64_t mostStagedBytes = 64 * 1024;

static constexpr int64_t bufferAlignment = 16;

bool cuda::isFill(linalg::GenericOp op) {
  return llvm::none_of(op->getOpOperands(), [&](OpOperand &operand) {
    return isa<RankedTensorType>(operand.get().getType()) &&
           op.payloadUsesValueFromOperand(&operand);
  });
}

namespace {
class Planner {
public:
  Planner(kern::FuncOp kernel, Decline &declined)
      : kernel(kernel), declined(declined), accesses(getAccesses(kernel)) {}

  FailureOr<TilesPlan> run();

private:
  LogicalResult decline(Operation *op, const Twine &reason) {
    if (!declined.op)
      declined = {op, reason.str()};
    return failure();
  }
  bool isKeptResult(OpResult result);
  bool isStaged(kern::LoadOp load);
  bool mayChange(kern::LoadOp load);
  void findReaders(Value tile, SmallVectorImpl<Operation *> &readers);
  std::optional<unsigned> getInPlace(linalg::GenericOp op, unsigned number);
  unsigned makeBuffer(Value tile);
  LogicalResult placeTiles(Block &block);
  LogicalResult placeCarried(scf::ForOp loop);
  void noteUse(Value tile, Operation *at);
  void noteUses();
  void allocate();

  kern::FuncOp kernel;
  Decline &declined;
  SmallVector<Access> accesses;
  llvm::DenseMap<Operation *, int64_t> numbers, lastNumbers;
  TilesPlan plan;
};
} // namespace

static int64_t countIterations(linalg::GenericOp op) {
  int64_t iterations = 1;
  for (int64_t size : op.getStaticLoopRanges())
    iterations *= size;
  return iterations;
}

/// Whether the user computes each element of what `producer` gives once, for
/// itself.
static bool computesForItself(OpOperand &use, Operation *producer) {
  Operation *user = use.getOwner();
  if (user->getBlock() != producer->getBlock())
    return false;
  if (isa<kern::StoreOp>(user))
    return true;
  auto generic = dyn_cast<linalg::GenericOp>(user);
  return generic &&
         (generic.getNumReductionLoops() == 0 ||
          (!generic.isDpsInit(&use) &&
           countIterations(generic) <=
               getTileType(use.get()).getNumElements()));
}

bool Planner::isKeptResult(OpResult result) {
  auto op = cast<linalg::GenericOp>(result.getOwner());
  if (op.getNumReductionLoops() != 0)
    return true;
  if (isFill(op))
    return false;
  // Reshapes are no reads of their own.
  Value tile = result;
  while (
      tile.hasOneUse() &&
      isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(*tile.user_begin()))
    tile = tile.user_begin()->getResult(0);
  return !tile.hasOneUse() || !computesForItself(*tile.use_begin(), op);
}

/// The ops that read elements of `tile`, by way of tiles that are not kept.
void Planner::findReaders(Value tile, SmallVectorImpl<Operation *> &readers) {
  for (Operation *user : tile.getUsers()) {
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (generic) {
      bool keepsAll = true;
      for (OpResult result : generic->getResults())
        if (!result.use_empty() && !isKeptResult(result)) {
          keepsAll = false;
          findReaders(result, readers);
        }
      if (!keepsAll)
        continue;
    } else if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user)) {
      findReaders(user->getResult(0), readers);
      continue;
    }
    readers.push_back(user);
  }
}

/// Whether a store may change what the load reads before it is read.
bool Planner::mayChange(kern::LoadOp load) {
  Access read = *Access::of(load);
  SmallVector<Operation *> readers;
  findReaders(load.getTile(), readers);
  Block *block = load->getBlock();
  for (const Access &write : accesses) {
    if (!write.isWrite || write.memref != read.memref)
      continue;
    Operation *writer = block->findAncestorOpInBlock(*write.op);
    if (!writer || writer->isBeforeInBlock(load) || areDisjoint(read, write))
      continue;
    for (Operation *reader : readers) {
      Operation *place = block->findAncestorOpInBlock(*reader);
      if (place != writer && place->isBeforeInBlock(writer))
        continue;
      // An elementwise op in place: a thread reads an element, then writes it.
      auto generic = dyn_cast_or_null<linalg::GenericOp>(
          load.getTile().hasOneUse() ? *load.getTile().user_begin() : nullptr);
      if (reader == write.op && generic && areElementwise(read, write) &&
          generic->hasOneUse() && *generic->user_begin() == reader &&
          llvm::all_of(generic.getIndexingMapsArray(),
                       [](AffineMap map) { return map.isIdentity(); }))
        continue;
      return true;
    }
  }
  return false;
}

bool Planner::isStaged(kern::LoadOp load) {
  if (mayChange(load))
    return true;
  int64_t elements = getTileType(load.getTile()).getNumElements();
  int64_t bytes =
      elements * getBytes(getTileType(load.getTile()).getElementType());
  if (bytes > mostStagedBytes)
    return false;
  SmallVector<Operation *> readers;
  findReaders(load.getTile(), readers);
  return llvm::any_of(readers, [&](Operation *reader) {
    auto generic = dyn_cast<linalg::GenericOp>(reader);
    if (!generic)
      return false;
    return countIterations(generic) > elements ||
           reader->getBlock() != load->getBlock();
  });
}

unsigned Planner::makeBuffer(Value tile) {
  RankedTensorType type = getTileType(tile);
  plan.buffers.push_back({type.getElementType(), type.getNumElements()});
  return plan.buffers.size() - 1;
}

/// The buffer of the tile that a result begins from, if nothing reads that
/// afterwards.
std::optional<unsigned> Planner::getInPlace(linalg::GenericOp op,
                                            unsigned number) {
  OpOperand *init = op.getDpsInitOperand(number);
  Value tile = init->get();
  auto place = plan.getPlace(tile);
  if (!place || !op.payloadUsesValueFromOperand(init) ||
      tile.getParentBlock() != op->getBlock())
    return std::nullopt;
  for (OpOperand &use : tile.getUses()) {
    if (&use == init)
      continue;
    Operation *user = op->getBlock()->findAncestorOpInBlock(*use.getOwner());
    if (user == op || !user->isBeforeInBlock(op) ||
        isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user))
      return std::nullopt;
    // It may be read later, by way of what this user gives.
    auto generic = dyn_cast<linalg::GenericOp>(user);
    if (generic)
      for (OpResult result : generic->getResults())
        if (!plan.getPlace(result) && !result.use_empty())
          return std::nullopt;
  }
  return place;
}

LogicalResult Planner::placeCarried(scf::ForOp loop) {
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    if (!isa<RankedTensorType>(argument.getType()))
      continue;
    unsigned buffer = makeBuffer(argument);
    plan.places[argument] = buffer;
    plan.places[loop.getResult(number)] = buffer;
  }
  return success();
}

LogicalResult Planner::placeTiles(Block &block) {
  for (Operation &op : block) {
    if (auto load = dyn_cast<kern::LoadOp>(op)) {
      if (!load.getTile().use_empty() && isStaged(load))
        plan.places[load.getTile()] = makeBuffer(load.getTile());
      continue;
    }
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      for (OpResult result : generic->getResults()) {
        if (result.use_empty() || !isKeptResult(result))
          continue;
        unsigned number = result.getResultNumber();
        auto place = getInPlace(generic, number);
        plan.places[result] = place ? *place : makeBuffer(result);
      }
      continue;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op);
        loop && failed(placeCarried(loop)))
      return failure();
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        if (failed(placeTiles(inner)))
          return failure();
  }
  return success();
}

/// The buffers that `tile` depends on are used at `at`.
void Planner::noteUse(Value tile, Operation *at) {
  if (!isa<RankedTensorType>(tile.getType()))
    return;
  if (auto place = plan.getPlace(tile)) {
    TileBuffer &buffer = plan.buffers[*place];
    // A use in a loop that the tile was there before lasts until its end.
    Operation *last = at;
    for (Operation *parent = at->getParentOp(); parent != kernel;
         parent = parent->getParentOp())
      if (isa<scf::ForOp, scf::WhileOp>(parent) &&
          numbers[parent] > buffer.begin)
        last = parent;
    buffer.end = std::max(buffer.end, lastNumbers[last]);
    return;
  }
  Operation *op = tile.getDefiningOp();
  if (!op || isa<kern::LoadOp>(op))
    return;
  for (Value operand : op->getOperands())
    noteUse(operand, at);
}

void Planner::noteUses() {
  int64_t next = 0;
  std::function<void(Operation *)> number = [&](Operation *op) {
    numbers[op] = next++;
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : block)
          number(&inner);
    lastNumbers[op] = op->getNumRegions() ? next++ : numbers[op];
  };
  number(kernel);
  for (TileBuffer &buffer : plan.buffers)
    buffer.begin = INT64_MAX;
  auto begin = [&](Value tile, Operation *at) {
    if (auto place = plan.getPlace(tile))
      plan.buffers[*place].begin =
          std::min(plan.buffers[*place].begin, numbers[at]);
  };
  kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (OpResult result : op->getResults())
      begin(result, op);
  });
  kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (OpResult result : op->getResults())
      noteUse(result, op);
    if (isa<linalg::GenericOp>(op)) {
      if (llvm::any_of(op->getResults(), [&](OpResult result) {
            return plan.getPlace(result).has_value();
          }))
        for (Value operand : op->getOperands())
          noteUse(operand, op);
      return;
    }
    if (isa<kern::StoreOp, tensor::ExtractOp, scf::ForOp, scf::YieldOp>(op))
      for (Value operand : op->getOperands())
        noteUse(operand, op);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      for (Value result : loop.getResults())
        if (auto place = plan.getPlace(result))
          plan.buffers[*place].end =
              std::max(plan.buffers[*place].end, lastNumbers[op]);
  });
}

/// First fit, in the order in which buffers begin.
void Planner::allocate() {
  SmallVector<TileBuffer *> order, placed;
  for (TileBuffer &buffer : plan.buffers)
    order.push_back(&buffer);
  llvm::stable_sort(
      order, [](TileBuffer *a, TileBuffer *b) { return a->begin < b->begin; });
  for (TileBuffer *buffer : order) {
    SmallVector<TileBuffer *> others;
    for (TileBuffer *other : placed)
      if (other->begin <= buffer->end && buffer->begin <= other->end)
        others.push_back(other);
    llvm::sort(others, [](TileBuffer *a, TileBuffer *b) {
      return a->offset < b->offset;
    });
    for (TileBuffer *other : others) {
      if (buffer->offset + buffer->getBytes() <= other->offset)
        break;
      buffer->offset = std::max<int64_t>(
          buffer->offset,
          llvm::alignTo(other->offset + other->getBytes(), bufferAlignment));
    }
    placed.push_back(buffer);
    plan.sharedBytes =
        std::max(plan.sharedBytes, buffer->offset + buffer->getBytes());
  }
  plan.sharedBytes = llvm::alignTo(plan.sharedBytes, bufferAlignment);
}

FailureOr<TilesPlan> Planner::run() {
  if (failed(placeTiles(kernel.getBody().front())))
    return failure();
  noteUses();
  allocate();
  return plan;
}

FailureOr<TilesPlan> TilesPlan::of(kern::FuncOp kernel, Decline &declined) {
  return Planner(kernel, declined).run();
}
