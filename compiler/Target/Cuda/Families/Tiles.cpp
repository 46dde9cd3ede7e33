//===- Tiles.cpp - Kernels with tiles in shared memory --------------------===//

#include "compiler/Target/Cuda/Families/Tiles.h"

#include "compiler/Target/Cuda/Families/TilesEmitter.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

static constexpr int64_t blockThreads = 128;

FailureOr<kern::EmissionAttr>
cuda::chooseTiles(kern::FuncOp kernel, const Architecture &architecture,
                  Decline &declined) {
  auto plan = TilesPlan::of(kernel, declined);
  if (failed(plan))
    return failure();
  int64_t most = architecture.maxSharedBytes();
  kernel.walk([&](kern::LookupOp lookup) {
    // At most: tables are static shared memory.
    auto table = cast<DenseElementsAttr>(lookup.getTable());
    most -= table.getNumElements() * getBytes(table.getElementType());
  });
  if (plan->sharedBytes > most) {
    declined = {kernel, ("needs " + Twine(plan->sharedBytes) +
                         " bytes of shared memory for its tiles; a block of " +
                         architecture.name + " has " + Twine(most))
                            .str()};
    return failure();
  }
  return kern::EmissionAttr::get(kernel.getContext(), "tiles", blockThreads,
                                 blockThreads, 1, plan->sharedBytes, 0);
}

std::string TilesEmitter::describe() {
  return "tiles in " + std::to_string(places.sharedBytes) +
         " bytes of shared memory, a block of " + std::to_string(getThreads()) +
         " threads an item";
}

LogicalResult TilesEmitter::plan() {
  auto found = TilesPlan::of(kernel, declined);
  if (failed(found))
    return failure();
  places = std::move(*found);
  for (const Access &access : getAccesses(kernel))
    if (!access.isWrite)
      readBack.insert(access.memref);
  return success();
}

void TilesEmitter::emitPrologue(Text &prologue) {
  prologue.line("const int lane = threadIdx.x;");
  for (auto [number, buffer] : llvm::enumerate(places.buffers)) {
    std::string type = getTypeName(buffer.element).str();
    prologue.line(type + " *const tile" + Twine(number) +
                  " = reinterpret_cast<" + type + " *>(shared + " +
                  Twine(buffer.offset) + "); // " + Twine(buffer.elements));
  }
}

std::string TilesEmitter::getDeclarations() {
  if (places.sharedBytes == 0)
    return "";
  return "\nextern __shared__ __align__(16) unsigned char shared[];\n";
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

void TilesEmitter::barrier() {
  text.line("__syncthreads();");
  pending = {};
}

/// What follows reads or writes what all threads see.
void TilesEmitter::before(bool reads, bool writes) {
  if ((reads && pending.writes) ||
      (writes && (pending.reads || pending.writes)))
    barrier();
  pending.reads |= reads;
  pending.writes |= writes;
}

void TilesEmitter::beforeScalar(const Access &access) {
  bool isSeen = isShared(access.memref);
  before(isSeen && !access.isWrite, isSeen && access.isWrite);
}

void TilesEmitter::enterLoop(Operation *loop) {
  loops.push_back(pending);
  if (pending.reads || pending.writes)
    barrier();
}

void TilesEmitter::leaveLoop(Operation *loop) {
  if (pending.reads || pending.writes)
    barrier();
  // The body may not have run, or was left in its middle.
  pending = isa<scf::WhileOp>(loop) ? Pending{true, true} : loops.back();
  loops.pop_back();
}

void TilesEmitter::nextBranch() {
  branches.back().second = pending;
  pending = branches.back().first;
}

void TilesEmitter::leaveBranches() {
  pending.reads |= branches.back().second.reads;
  pending.writes |= branches.back().second.writes;
  branches.pop_back();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

std::optional<std::string> TilesEmitter::getKept(Value tile,
                                                 ArrayRef<std::string> index) {
  if (!places.getPlace(tile))
    return std::nullopt;
  std::string position = linearize(index, getTileType(tile).getShape());
  return getBuffer(tile) + "[" + position + "]";
}

std::string TilesEmitter::openShared(int64_t count) {
  std::string number = fresh("e");
  text.open("for (int " + number + " = lane; " + number + " < " + Twine(count) +
            "; " + number + " += " + Twine(getThreads()) + ")");
  forgetElements();
  return number;
}

LogicalResult TilesEmitter::emitCopy(Value from, Value to) {
  RankedTensorType type = getTileType(to);
  before(true, true);
  std::string position = openShared(type.getNumElements());
  auto value = getElement(from, delinearize(position, type.getShape()));
  if (failed(value))
    return failure();
  text.line(getBuffer(to) + "[" + position + "] = " + *value + ";");
  text.close();
  return success();
}

LogicalResult TilesEmitter::emitLoad(kern::LoadOp load) {
  Access access = *Access::of(load);
  Value tile = load.getTile();
  if (tile.use_empty())
    return success();
  std::string pointer = fresh("p");
  text.line(Twine(isWritten(access.memref) ? "" : "const ") +
            getTypeName(access.getType().getElementType()) + " *const " +
            pointer + " = " + getAddress(access) + ";");
  pointers[tile] = pointer;
  if (!places.getPlace(tile)) {
    pending.reads |= isShared(access.memref);
    return success();
  }
  before(isShared(access.memref), true);
  std::string position = openShared(getTileType(tile).getNumElements());
  SmallVector<std::string> index =
      delinearize(position, getTileType(tile).getShape());
  text.line(getBuffer(tile) + "[" + position + "] = " + pointer + "[" +
            getOffset(access, index) + "];");
  text.close();
  return success();
}

LogicalResult TilesEmitter::emitStore(kern::StoreOp store) {
  Access access = *Access::of(store);
  before(true, isShared(access.memref));
  std::string pointer = fresh("p");
  text.line(getTypeName(access.getType().getElementType()) + " *const " +
            pointer + " = " + getAddress(access) + ";");
  std::string position =
      openShared(getTileType(store.getTile()).getNumElements());
  SmallVector<std::string> index =
      delinearize(position, getTileType(store.getTile()).getShape());
  auto value = getElement(store.getTile(), index);
  if (failed(value))
    return failure();
  text.line(pointer + "[" + getOffset(access, index) + "] = " + *value + ";");
  text.close();
  return success();
}

LogicalResult TilesEmitter::emitExtract(tensor::ExtractOp extract) {
  before(true, false);
  SmallVector<std::string> index;
  for (Value position : extract.getIndices())
    index.push_back(names.get(position));
  auto value = getElement(extract.getTensor(), index);
  if (failed(value))
    return failure();
  declare(extract, *value, names);
  return success();
}

LogicalResult TilesEmitter::beginCarried(scf::ForOp loop,
                                         ArrayRef<unsigned> tiles) {
  for (unsigned number : tiles)
    if (failed(emitCopy(loop.getInitArgs()[number], loop.getResult(number))))
      return failure();
  return success();
}

LogicalResult TilesEmitter::assignCarried(scf::ForOp loop,
                                          ArrayRef<unsigned> tiles) {
  for (unsigned number : tiles) {
    Value next = loop.getYieldedValues()[number];
    if (places.getPlace(next) == places.getPlace(loop.getResult(number)))
      continue;
    if (llvm::is_contained(loop.getRegionIterArgs(), next))
      return decline(loop, "exchanges the tiles that it carries");
    if (failed(emitCopy(next, loop.getResult(number))))
      return failure();
  }
  return success();
}

LogicalResult TilesEmitter::emitTile(Operation *op) {
  if (auto load = dyn_cast<kern::LoadOp>(op))
    return emitLoad(load);
  if (auto store = dyn_cast<kern::StoreOp>(op))
    return emitStore(store);
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return emitExtract(extract);
  auto generic = cast<linalg::GenericOp>(op);
  if (generic->use_empty())
    return success();
  return generic.getNumReductionLoops() == 0 ? emitElementwise(generic)
                                             : emitReduction(generic);
}

FailureOr<KernelText> cuda::emitTiles(kern::FuncOp kernel,
                                      kern::EmissionAttr emission,
                                      StringRef symbol, Decline &declined) {
  TilesEmitter emitter(kernel, emission);
  auto text = emitter.run(symbol);
  declined = emitter.declined;
  return text;
}
