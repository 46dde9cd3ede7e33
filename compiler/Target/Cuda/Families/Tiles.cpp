//===- Tiles.cpp - Kernels with tiles in shared memory --------------------===//

#include "compiler/Target/Cuda/Families/Tiles.h"

#include "compiler/Target/Cuda/Families/Combiner.h"
#include "compiler/Target/Cuda/Families/TilesPlan.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

static constexpr int64_t blockThreads = 128;

/// Results of a contraction that a thread keeps in registers, at most: rows
/// whose operand all lanes share, and columns.
static constexpr int64_t mostRows = 8, mostColumns = 2;

/// From so many terms on a warp shares out those of one result, if they lie
/// side by side in global memory.
static constexpr int64_t manyTerms = 256;

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

namespace {
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
} // namespace

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

//===----------------------------------------------------------------------===//
// Generics
//===----------------------------------------------------------------------===//

/// The place of a result's element at an iteration.
std::string TilesEmitter::getTarget(Value result, ArrayRef<std::string> dims,
                                    linalg::GenericOp op) {
  unsigned number = cast<OpResult>(result).getResultNumber();
  SmallVector<std::string> index;
  for (AffineExpr expression :
       op.getMatchingIndexingMap(op.getDpsInitOperand(number)).getResults())
    index.push_back(getIndex(expression, dims));
  return *getKept(result, index);
}

LogicalResult TilesEmitter::emitElementwise(linalg::GenericOp op) {
  SmallVector<OpResult> kept;
  SmallVector<Value> wanted;
  for (OpResult result : op->getResults()) {
    if (!places.getPlace(result))
      continue;
    kept.push_back(result);
    wanted.push_back(
        op.getBlock()->getTerminator()->getOperand(result.getResultNumber()));
    if (!op.getMatchingIndexingMap(
               op.getDpsInitOperand(result.getResultNumber()))
             .isPermutation())
      return decline(op, "does not write each element once");
  }
  if (kept.empty())
    return success();
  before(true, true);
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  int64_t iterations = 1;
  for (int64_t size : sizes)
    iterations *= size;
  std::string position = openShared(iterations);
  SmallVector<std::string> dims = delinearize(position, sizes);
  Names payload(&names);
  if (failed(emitPayload(
          op, wanted, dims,
          [&](OpOperand &operand) { return getOperand(op, operand, dims); },
          payload)))
    return failure();
  for (auto [result, value] : llvm::zip(kept, wanted))
    text.line(getTarget(result, dims, op) + " = " + payload.get(value) + ";");
  text.close();
  return success();
}

/// Whether the elements of `tile` are those of a load, or made of them one by one.
bool TilesEmitter::isComputedFromMemory(Value tile) {
  if (places.getPlace(tile))
    return false;
  if (tile.getDefiningOp<kern::LoadOp>())
    return true;
  auto generic = tile.getDefiningOp<linalg::GenericOp>();
  return generic && generic.getNumDpsInputs() == 1 &&
         llvm::all_of(generic.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); }) &&
         isComputedFromMemory(generic.getDpsInputs()[0]);
}

/// Whether the terms of a result are neighbours in global memory.
bool TilesEmitter::readsRowsOfMemory(linalg::GenericOp op) {
  unsigned innermost = op.getNumLoops() - 1;
  if (op.getIteratorTypesArray()[innermost] != utils::IteratorType::reduction ||
      op.getStaticLoopRanges()[innermost] < manyTerms)
    return false;
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    return map.getNumResults() != 0 &&
           map.getResults().back() ==
               getAffineDimExpr(innermost, op.getContext()) &&
           isComputedFromMemory(operand->get());
  });
}

LogicalResult TilesEmitter::emitByWarps(linalg::GenericOp op,
                                        ArrayRef<unsigned> parallel,
                                        ArrayRef<Combiner> combiners) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges(), outer;
  int64_t count = 1;
  for (unsigned dim : parallel) {
    outer.push_back(sizes[dim]);
    count *= sizes[dim];
  }
  std::string number = fresh("e");
  text.open("for (int " + number + " = lane / 32; " + number + " < " +
            Twine(count) + "; " + number + " += " + Twine(getThreads() / 32) +
            ")");
  forgetElements();
  SmallVector<std::string> dims(sizes.size()), sums;
  for (auto [dim, name] : llvm::zip(parallel, delinearize(number, outer)))
    dims[dim] = name;
  for (auto [result, combiner] : llvm::zip(op->getResults(), combiners)) {
    sums.push_back(fresh("sum"));
    text.line(getTypeName(getTileType(result).getElementType()) + " " +
              sums.back() + " = " + combiner.identity + ";");
  }
  auto combine = [&](const Combiner &combiner, StringRef a, StringRef b) {
    Names operands(&names);
    operands.set(combiner.sum, a);
    operands.set(combiner.term, b);
    return *scalars.getExpression(combiner.op, operands);
  };
  unsigned opened = 0;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (llvm::is_contained(parallel, dim))
      continue;
    bool isInnermost = dim + 1 == sizes.size();
    dims[dim] = fresh("d");
    if (isInnermost)
      text.unroll(4);
    text.open("for (int " + dims[dim] + " = " +
              (isInnermost ? "lane % 32" : "0") + "; " + dims[dim] + " < " +
              Twine(size) + "; " + dims[dim] +
              " += " + (isInnermost ? "32" : "1") + ")");
    ++opened;
  }
  forgetElements();
  SmallVector<Value> terms;
  for (const Combiner &combiner : combiners)
    terms.push_back(combiner.term);
  Names payload(&names);
  if (failed(emitPayload(
          op, terms, dims,
          [&](OpOperand &operand) { return getOperand(op, operand, dims); },
          payload)))
    return failure();
  for (auto [combiner, sum] : llvm::zip(combiners, sums))
    text.line(sum + " = " + combine(combiner, sum, payload.get(combiner.term)) +
              ";");
  forgetElements();
  while (opened--)
    text.close();
  text.unroll();
  text.open("for (int o = 16; o > 0; o /= 2)");
  for (auto [combiner, sum] : llvm::zip(combiners, sums)) {
    Type element = combiner.op->getResult(0).getType();
    StringRef type = getTypeName(element);
    std::string other = fresh("v");
    // Shuffles take words.
    text.line("const " + type + " " + other + " = " + type +
              "(__shfl_xor_sync(~0u, " +
              (getBytes(element) < 4 ? "int(" + sum + ")" : sum) + ", o));");
    text.line(sum + " = " + combine(combiner, sum, other) + ";");
  }
  text.close();
  text.open("if (lane % 32 == 0)");
  for (auto [result, combiner, sum] :
       llvm::zip(op->getResults(), combiners, sums)) {
    auto init = getOperand(
        op, *op.getDpsInitOperand(cast<OpResult>(result).getResultNumber()),
        dims);
    if (failed(init))
      return failure();
    if (places.getPlace(result))
      text.line(getTarget(result, dims, op) + " = " +
                combine(combiner, *init, sum) + ";");
  }
  text.close();
  text.close();
  return success();
}

LogicalResult TilesEmitter::emitByThreads(linalg::GenericOp op,
                                          ArrayRef<unsigned> parallel) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges(), outer;
  int64_t count = 1;
  for (unsigned dim : parallel) {
    outer.push_back(sizes[dim]);
    count *= sizes[dim];
  }
  // A thread keeps several results, which share what they read.
  int64_t rows = 1, columns = 1, threads = getThreads();
  if (outer.size() >= 2) {
    int64_t &height = outer[outer.size() - 2], &width = outer.back();
    while (rows < mostRows && height % 2 == 0 && count / 2 >= threads) {
      rows *= 2;
      height /= 2;
      count /= 2;
    }
    while (columns < mostColumns && width % 2 == 0 && count / 2 >= threads) {
      columns *= 2;
      width /= 2;
      count /= 2;
    }
  }
  std::string number = openShared(count);
  SmallVector<std::string> place = delinearize(number, outer);
  for (std::string &name : place) {
    std::string variable = fresh("d");
    text.line("const int " + variable + " = " + name + ";");
    name = variable;
  }
  SmallVector<std::string> dims(sizes.size());
  for (auto [dim, name] : llvm::zip(parallel, place))
    dims[dim] = name;
  std::string own = "r * " + std::to_string(columns) + " + c";
  // The dimensions of the result at hand within the thread's.
  auto openResults = [&] {
    if (rows == 1 && columns == 1) {
      own = "0";
      return;
    }
    text.unroll();
    text.open("for (int r = 0; r < " + Twine(rows) + "; ++r)");
    text.unroll();
    text.open("for (int c = 0; c < " + Twine(columns) + "; ++c)");
    size_t last = outer.size() - 1;
    std::string row = fresh("d"), column = fresh("d");
    text.line("const int " + row + " = " + place[last - 1] + " + r * " +
              Twine(outer[last - 1]) + ";");
    text.line("const int " + column + " = " + place[last] + " + c * " +
              Twine(outer[last]) + ";");
    dims[parallel[last - 1]] = row;
    dims[parallel[last]] = column;
    forgetElements();
  };
  auto closeResults = [&] {
    forgetElements();
    if (rows == 1 && columns == 1)
      return;
    text.close();
    text.close();
  };

  SmallVector<std::string> arrays;
  for (OpResult result : op->getResults()) {
    arrays.push_back(fresh("sums"));
    text.line(getTypeName(getTileType(result).getElementType()) + " " +
              arrays.back() + "[" + Twine(rows * columns) + "];");
  }
  openResults();
  for (auto [init, array] : llvm::zip(op.getDpsInitsMutable(), arrays)) {
    auto value = getOperand(op, init, dims);
    if (failed(value))
      return failure();
    text.line(array + "[" + own + "] = " + *value + ";");
  }
  closeResults();

  unsigned opened = 0;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (llvm::is_contained(parallel, dim))
      continue;
    dims[dim] = fresh("d");
    if (dim + 1 == sizes.size())
      text.unroll(4);
    text.open("for (int " + dims[dim] + " = 0; " + dims[dim] + " < " +
              Twine(size) + "; ++" + dims[dim] + ")");
    ++opened;
  }
  openResults();
  SmallVector<Value> wanted(op.getBlock()->getTerminator()->getOperands());
  Names payload(&names);
  for (auto [argument, array] : llvm::zip(op.getRegionOutputArgs(), arrays))
    payload.set(argument, array + "[" + own + "]");
  if (failed(emitPayload(
          op, wanted, dims,
          [&](OpOperand &operand) { return getOperand(op, operand, dims); },
          payload)))
    return failure();
  for (auto [array, value] : llvm::zip(arrays, wanted))
    text.line(array + "[" + own + "] = " + payload.get(value) + ";");
  closeResults();
  while (opened--)
    text.close();

  openResults();
  for (auto [result, array] : llvm::zip(op->getResults(), arrays))
    if (places.getPlace(result))
      text.line(getTarget(result, dims, op) + " = " + array + "[" + own + "];");
  closeResults();
  text.close();
  return success();
}

LogicalResult TilesEmitter::emitReduction(linalg::GenericOp op) {
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  SmallVector<unsigned> parallel;
  for (AffineExpr expression : output.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expression);
    if (!dim || llvm::is_contained(parallel, dim.getPosition()))
      return decline(op, "does not write each element once");
    parallel.push_back(dim.getPosition());
  }
  for (OpOperand &init : op.getDpsInitsMutable())
    if (op.getMatchingIndexingMap(&init) != output)
      return decline(op, "reduces to tiles of different maps");
  if (parallel.size() != op.getNumParallelLoops())
    return decline(op, "does not write each element once");
  before(true, true);
  if (readsRowsOfMemory(op) || parallel.empty())
    if (auto combiners = getCombiners(op))
      return emitByWarps(op, parallel, *combiners);
  return emitByThreads(op, parallel);
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
