//===- Rows.cpp - Kernels with tiles in registers -------------------------===//

#include "compiler/Target/Cuda/Families/Rows.h"

#include "compiler/Target/Cuda/Families/Combiner.h"
#include "compiler/Target/Cuda/Families/MemorySync.h"
#include "compiler/Target/Cuda/Families/RowsPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

/// Registers of a thread for tiles that are held although they could be read
/// again, and at most.
static constexpr int64_t heldRegisters = 64, mostHeldRegisters = 128;

/// Threads of a block whose items are smaller.
static constexpr int64_t blockThreads = 128;

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

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
    int64_t blocks =
        hasCostlyInvariants(kernel) ? std::max<int64_t>(1, 2048 / threads) : 0;
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
    return get(blockThreads, group, 1);
  }
  // Up to 128 bytes of reads on the way a thread, and 16 elements.
  int64_t perThread = std::clamp<int64_t>(
      128 / std::max<int64_t>(main.bytes, 1), main.vector, 16);
  if (main.isInLoop)
    perThread = std::max(main.vector, perThread / 2);
  int64_t rounds = std::max<int64_t>(perThread / main.vector, 1);
  rounds = std::max(rounds, llvm::divideCeilSigned(vectors, (int64_t)1024));
  int64_t group = llvm::alignTo(llvm::divideCeilSigned(vectors, rounds), 32);
  return get(group, group, 1);
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

namespace {

/// How the elements of a tile are spread over the group.
struct Layout {
  int64_t elements, vector, rounds;
  bool isGuarded; ///< some threads own nothing in the last round

  bool isUnrolled = true;
};

class RowsEmitter : public Emitter {
public:
  using Emitter::Emitter;

private:
  std::string describe() override;
  LogicalResult plan() override;
  LogicalResult emitTile(Operation *op) override;
  void beforeScalar(const Access &access) override;
  std::optional<std::string> getKept(Value tile,
                                     ArrayRef<std::string> index) override;
  std::string getLeader() override;
  std::string getForHead(scf::ForOp loop, StringRef counter) override;
  void enterLoop(Operation *loop) override { sync.enterLoop(loop); }
  void leaveLoop(Operation *loop) override;
  void enterBranch() override { sync.enterBranch(); }
  void nextBranch() override { sync.nextBranch(); }
  void leaveBranches() override { sync.leaveBranches(); }
  LogicalResult beginCarried(scf::ForOp loop,
                             ArrayRef<unsigned> tiles) override;
  LogicalResult assignCarried(scf::ForOp loop,
                              ArrayRef<unsigned> tiles) override;
  void endCarried(scf::ForOp loop, ArrayRef<unsigned> tiles) override;
  void emitPrologue(Text &prologue) override;
  std::string getDeclarations() override { return declarations.str(); }

  int64_t group() { return emission.getGroup(); }
  Layout getLayout(int64_t elements);
  int64_t countRegisters(Value tile);
  void chooseHeld();
  bool isHeld(Value tile) { return toHold.contains(tile); }
  /// The tile whose registers hold `tile`, if any do.
  Value getHolder(Value tile);

  void emitBarrier();
  void synchronise(ArrayRef<Touch> touches);
  void synchronise(const Consumer &consumer, Who reader);

  LogicalResult emitLoad(kern::LoadOp load);
  LogicalResult emitStores(const Consumer &consumer);
  LogicalResult emitReduction(linalg::GenericOp op);
  LogicalResult emitPartialSums(linalg::GenericOp op,
                                ArrayRef<Combiner> combiners,
                                ArrayRef<std::string> sums);
  void emitCombination(ArrayRef<Combiner> combiners,
                       ArrayRef<std::string> sums);
  LogicalResult emitSequence(linalg::GenericOp op, ArrayRef<std::string> sums);
  LogicalResult emitExtract(tensor::ExtractOp extract);

  /// Calls `body` in a loop over the elements of a tile that a thread owns,
  /// some neighbours at a time, after reading what `tiles` depend on; then
  /// `inner`, if given, in a loop over the neighbours; then `after`.
  using Body = llvm::function_ref<LogicalResult()>;
  LogicalResult emitOwned(const Layout &layout, ArrayRef<Value> tiles,
                          Body before, Body inner, Body after);
  void readLeaves(Value tile, llvm::DenseSet<Value> &visited);
  std::string getRead(const Access &access, StringRef pointer);
  int64_t getAccessBytes(const Access &access);
  std::string getAligned(const Access &access, int64_t vector);

  /// The element of a tile at the place that the loops of emitOwned are at.
  /// With `isUnrounded` the f32 that it is the rounded value of, see isRounded.
  FailureOr<std::string> getOwned(Value tile, bool isUnrounded = false);
  bool isRounded(Value tile);
  void forgetOwned() {
    owned.clear();
    payloads.clear();
    forgetElements();
  }
  std::string getCombined(const Combiner &combiner, StringRef a, StringRef b);

  std::optional<RowsAnalysis> analysis;
  MemorySync sync;
  llvm::DenseSet<Value> toHold;
  llvm::DenseMap<Value, std::string> held;    ///< arrays of Words, by round
  llvm::DenseMap<Value, std::string> carried; ///< arrays of elements
  llvm::DenseMap<Value, std::string> results; ///< of reductions
  Text declarations = Text(0);

  // In the loops of emitOwned.
  Layout layout = {};
  llvm::DenseMap<Value, std::string> leaves; ///< Words of loads
  llvm::DenseMap<std::pair<Value, unsigned>, std::string> owned;
  /// What was computed of an op's payload at the place at hand.
  std::map<Operation *, Names> payloads;
};

} // namespace

std::string RowsEmitter::describe() {
  std::string what = "rows, " + std::to_string(group()) + " threads a tile";
  if (emission.getTeams() != 1)
    what += ", " + std::to_string(emission.getTeams()) +
            " tiles of an item at a time";
  return what;
}

Layout RowsEmitter::getLayout(int64_t elements) {
  int64_t vector = analysis->classes[elements].vector;
  int64_t vectors = elements / vector;
  Layout result = {elements, vector, llvm::divideCeilSigned(vectors, group()),
                   vectors % group() != 0};
  result.isUnrolled = result.rounds <= 8;
  return result;
}

int64_t RowsEmitter::countRegisters(Value tile) {
  Layout layout = getLayout(getTileType(tile).getNumElements());
  int64_t bytes = layout.vector * getBytes(getTileType(tile).getElementType());
  return layout.rounds * llvm::divideCeilSigned(bytes, (int64_t)4);
}

/// Decides which loads stay in registers from where they stand.
void RowsEmitter::chooseHeld() {
  int64_t registers = 0;
  auto hold = [&](Value tile, int64_t limit) {
    int64_t more = countRegisters(tile);
    if (isHeld(tile) || registers + more > limit)
      return isHeld(tile);
    registers += more;
    toHold.insert(tile);
    return true;
  };
  // Where they must, whatever it costs; see plan.
  for (Value tile : analysis->early)
    if (!analysis->forwarded.contains(tile))
      hold(tile, INT64_MAX);
  for (auto [loaded, stored] : llvm::make_early_inc_range(analysis->forwarded))
    if (!hold(stored, heldRegisters) && analysis->early.contains(loaded))
      hold(loaded, INT64_MAX);
  // Loads that several loops read, or one that runs often.
  llvm::MapVector<Value, llvm::SmallDenseSet<unsigned>> readers;
  llvm::DenseSet<Value> outside;
  for (TileUse &use : analysis->uses) {
    if (!use.isOwned)
      continue;
    Value tile = use.load.getTile();
    readers[tile].insert(use.consumer);
    Operation *at = analysis->consumers[use.consumer].at;
    for (Operation *parent = at->getParentOp();
         parent != use.load->getParentOp(); parent = parent->getParentOp())
      if (isa<scf::ForOp, scf::WhileOp>(parent))
        outside.insert(tile);
  }
  for (auto &[tile, loops] : readers)
    if (loops.size() > 1 || outside.contains(tile))
      if (!getHolder(tile))
        hold(tile, heldRegisters);
  if (registers > mostHeldRegisters)
    (void)decline(kernel,
                  "needs " + Twine(registers) +
                      " registers of a thread for tiles that it changes");
}

Value RowsEmitter::getHolder(Value tile) {
  if (isHeld(tile))
    return tile;
  Value stored = analysis->forwarded.lookup(tile);
  return stored && isHeld(stored) ? stored : Value();
}

LogicalResult RowsEmitter::plan() {
  auto found = RowsAnalysis::of(kernel, declined);
  if (failed(found))
    return failure();
  analysis = std::move(*found);
  for (auto &[elements, tileClass] : analysis->classes)
    if (elements > INT32_MAX)
      return decline(kernel, "has a tile of " + Twine(elements) + " elements");
  chooseHeld();
  return failure(declined.op != nullptr);
}

void RowsEmitter::emitPrologue(Text &prologue) {
  int64_t size = group();
  if (size == getThreads())
    prologue.line("const int lane = threadIdx.x;");
  else
    prologue.line("const int lane = threadIdx.x % " + Twine(size) + ";");
  if (emission.getTeams() != 1)
    prologue.line("const int team = threadIdx.x / " + Twine(size) + " % " +
                  Twine(emission.getTeams()) + ";");
  if (size == 32)
    prologue.line("const u32 mask = ~0u;");
  else if (size > 1 && size < 32)
    prologue.line("const u32 mask = " + Twine((1u << size) - 1) +
                  "u << (threadIdx.x & " + Twine(32 - size) + ");");
}

std::string RowsEmitter::getLeader() {
  // Scalars are written by one team only within its loops, which no other runs.
  return group() == 1 ? "" : "lane == 0";
}

std::string RowsEmitter::getForHead(scf::ForOp loop, StringRef counter) {
  if (emission.getTeams() == 1 || loop->getParentOp() != kernel)
    return Emitter::getForHead(loop, counter);
  std::string step = names.get(loop.getStep());
  return ("for (i64 " + counter + " = " + names.get(loop.getLowerBound()) +
          " + team * " + step + "; " + counter + " < " +
          names.get(loop.getUpperBound()) + "; " + counter +
          " += " + Twine(emission.getTeams()) + " * " + step + ")")
      .str();
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

void RowsEmitter::emitBarrier() {
  if (group() > 32)
    text.line("__syncthreads();");
  else if (group() > 1)
    text.line("__syncwarp(mask);");
  sync.barrier();
}

void RowsEmitter::synchronise(ArrayRef<Touch> touches) {
  if (sync.needsBarrier(touches))
    emitBarrier();
  sync.add(touches);
}

void RowsEmitter::synchronise(const Consumer &consumer, Who reader) {
  SmallVector<Touch> touches;
  unsigned number = &consumer - analysis->consumers.data();
  for (TileUse &use : analysis->uses)
    if (use.consumer == number &&
        !(use.isOwned && getHolder(use.load.getTile())))
      touches.push_back(
          {*Access::of(use.load), use.isOwned ? reader : Who::Anyone});
  for (kern::StoreOp store : consumer.stores)
    touches.push_back({*Access::of(store), Who::Owner});
  synchronise(touches);
}

void RowsEmitter::beforeScalar(const Access &access) {
  synchronise(Touch{access, access.isWrite ? Who::Leader : Who::Anyone});
}

void RowsEmitter::leaveLoop(Operation *loop) {
  if (sync.needsBarrierAtEnd())
    emitBarrier();
  sync.leaveLoop();
}

//===----------------------------------------------------------------------===//
// Elements that a thread owns
//===----------------------------------------------------------------------===//

int64_t RowsEmitter::getAccessBytes(const Access &access) {
  int64_t bytes = getBytes(access.getType().getElementType());
  return std::min<int64_t>(
      16, bytes * std::gcd(access.getAlignment(16), layout.vector));
}

/// Bytes of an access, which depend on where the argument begins.
std::string RowsEmitter::getAligned(const Access &access, int64_t vector) {
  int64_t element = getBytes(access.getType().getElementType());
  int64_t bytes = getAccessBytes(access);
  if (bytes == element)
    return std::to_string(bytes);
  vectorised.insert(access.memref);
  return "Aligned ? " + std::to_string(bytes) + " : " + std::to_string(element);
}

std::string RowsEmitter::getRead(const Access &access, StringRef pointer) {
  helpers.use(Helper::Read);
  int64_t bytes = layout.vector * getBytes(access.getType().getElementType());
  return "read<" + std::to_string(bytes) + ", " +
         getAligned(access, layout.vector) + ">(" + pointer.str() + " + e)";
}

/// Reads what `tile` depends on at the place at hand and is not held.
void RowsEmitter::readLeaves(Value tile, llvm::DenseSet<Value> &visited) {
  if (!isa<RankedTensorType>(tile.getType()) || !visited.insert(tile).second ||
      held.contains(tile))
    return;
  Operation *op = tile.getDefiningOp();
  if (!op)
    return;
  if (auto load = dyn_cast<kern::LoadOp>(op)) {
    Access access = *Access::of(load);
    Value holder = getHolder(tile);
    if ((holder && held.contains(holder)) || !access.isContiguous())
      return;
    std::string name = fresh("w");
    text.line("const auto " + name + " = " + getRead(access, pointers[tile]) +
              ";");
    leaves[tile] = name;
    return;
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return readLeaves(op->getOperand(0), visited);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumReductionLoops() != 0)
    return;
  unsigned number = cast<OpResult>(tile).getResultNumber();
  if (!generic.getMatchingIndexingMap(generic.getDpsInitOperand(number))
           .isIdentity())
    return;
  for (OpOperand &operand : generic->getOpOperands())
    if (generic.getMatchingIndexingMap(&operand).isIdentity() &&
        readsOperand(generic, operand, number))
      readLeaves(operand.get(), visited);
}

LogicalResult RowsEmitter::emitOwned(const Layout &newLayout,
                                     ArrayRef<Value> tiles, Body before,
                                     Body inner, Body after) {
  layout = newLayout;
  leaves.clear();
  if (layout.isUnrolled)
    text.unroll();
  else
    text.unroll(4);
  text.open("for (int k = 0; k < " + Twine(layout.rounds) + "; ++k)");
  std::string place =
      group() == 1 ? "k" : "(k * " + std::to_string(group()) + " + lane)";
  text.line("const int e = " + place + " * " + Twine(layout.vector) + ";");
  if (layout.isGuarded)
    text.open("if (e < " + Twine(layout.elements) + ")");
  llvm::DenseSet<Value> visited;
  for (Value tile : tiles)
    readLeaves(tile, visited);
  if (before && failed(before()))
    return failure();
  if (inner) {
    text.unroll();
    text.open("for (int j = 0; j < " + Twine(layout.vector) + "; ++j)");
    forgetOwned();
    if (failed(inner()))
      return failure();
    forgetOwned();
    text.close();
  }
  if (after && failed(after()))
    return failure();
  if (layout.isGuarded)
    text.close();
  text.close();
  leaves.clear();
  return success();
}

/// Whether the elements of `tile` are made by rounding an f32 to bf16.
bool RowsEmitter::isRounded(Value tile) {
  tile = skipReshapes(tile);
  auto generic = tile.getDefiningOp<linalg::GenericOp>();
  Value holder = getHolder(tile);
  if (!generic || !getTileType(tile).getElementType().isBF16() ||
      (holder && held.contains(holder)))
    return false;
  unsigned number = cast<OpResult>(tile).getResultNumber();
  auto truncate = generic.getBlock()
                      ->getTerminator()
                      ->getOperand(number)
                      .getDefiningOp<arith::TruncFOp>();
  return truncate && truncate.getIn().getType().isF32() &&
         truncate->getBlock() == generic.getBlock() &&
         generic.getMatchingIndexingMap(generic.getDpsInitOperand(number))
             .isIdentity();
}

FailureOr<std::string> RowsEmitter::getOwned(Value tile, bool isUnrounded) {
  std::pair<Value, unsigned> key(tile, isUnrounded);
  if (auto found = owned.find(key); found != owned.end())
    return found->second;
  auto keep = [&](const Twine &expression) {
    std::string name = fresh("v");
    text.line("const " + getTypeName(getTileType(tile).getElementType()) + " " +
              name + " = " + expression + ";");
    return owned[key] = name;
  };
  auto fromWords = [&](const Twine &words) {
    helpers.use(Helper::At);
    return keep("at<" + getTypeName(getTileType(tile).getElementType()) + ">(" +
                words + ", j)");
  };
  if (auto found = carried.find(tile); found != carried.end())
    return keep(found->second + "[k * " + Twine(layout.vector) + " + j]");
  if (Value holder = getHolder(tile))
    if (auto found = held.find(holder); found != held.end())
      return fromWords(found->second + "[k]");
  if (auto found = leaves.find(tile); found != leaves.end())
    return fromWords(found->second);

  Operation *op = tile.getDefiningOp();
  if (op && isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return getOwned(op->getOperand(0), isUnrounded);
  // The place as an index, for what is not read in order.
  SmallVector<std::string> index =
      delinearize("e + j", getTileType(tile).getShape());
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  unsigned number = generic ? cast<OpResult>(tile).getResultNumber() : 0;
  if (!generic || generic.getNumReductionLoops() != 0 ||
      !generic.getMatchingIndexingMap(generic.getDpsInitOperand(number))
           .isIdentity())
    return getElement(tile, index);

  Value result = generic.getBlock()->getTerminator()->getOperand(number);
  if (isUnrounded)
    result = result.getDefiningOp<arith::TruncFOp>().getIn();
  auto operand = [&](OpOperand &operand) -> FailureOr<std::string> {
    if (isa<RankedTensorType>(operand.get().getType()) &&
        generic.getMatchingIndexingMap(&operand).isIdentity() &&
        generic.getNumLoops() != 0)
      return getOwned(operand.get());
    return getOperand(generic, operand, index);
  };
  // Results of one op share what they are computed from.
  auto [place, isNew] = payloads.try_emplace(generic.getOperation(), &names);
  Names &shared = place->second;
  if (failed(emitPayload(generic, result, index, operand, shared)))
    return failure();
  std::string name = shared.get(result);
  return owned[key] = name;
}

std::optional<std::string> RowsEmitter::getKept(Value tile,
                                                ArrayRef<std::string> index) {
  if (auto found = results.find(tile); found != results.end())
    return found->second;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Loads, stores, carried tiles
//===----------------------------------------------------------------------===//

LogicalResult RowsEmitter::emitLoad(kern::LoadOp load) {
  Access access = *Access::of(load);
  Value tile = load.getTile();
  if (tile.use_empty())
    return success();
  StringRef type = getTypeName(access.getType().getElementType());
  std::string pointer = fresh("p");
  text.line(Twine(isWritten(access.memref) ? "" : "const ") + type +
            " *const " + pointer + " = " + getAddress(access) + ";");
  pointers[tile] = pointer;
  if (!isHeld(tile))
    return success();
  if (!access.isContiguous())
    return decline(load, "has gaps and is changed later");
  synchronise(Touch{access, Who::Owner});
  std::string array = fresh("held");
  Layout place = getLayout(getTileType(tile).getNumElements());
  place.isUnrolled = true;
  helpers.use(Helper::Words);
  text.line("Words<" +
            Twine(place.vector * getBytes(access.getType().getElementType())) +
            "> " + array + "[" + Twine(place.rounds) + "];");
  auto read = [&]() -> LogicalResult {
    text.line(array + "[k] = " + getRead(access, pointer) + ";");
    return success();
  };
  if (failed(emitOwned(place, {}, read, nullptr, nullptr)))
    return failure();
  held[tile] = array;
  return success();
}

LogicalResult RowsEmitter::emitStores(const Consumer &consumer) {
  synchronise(consumer, Who::Owner);
  Layout place = getLayout(consumer.elements);
  layout = place;
  struct Target {
    Access access;
    Value tile;
    std::string pointer;
    std::string words;  ///< what is written in a round
    std::string floats; ///< f32 to be rounded in pairs
    bool isCopy;
  };
  SmallVector<Target> targets;
  for (kern::StoreOp store : consumer.stores) {
    Access access = *Access::of(store);
    Target target = {access, store.getTile(), fresh("p"), "", "", false};
    text.line(getTypeName(access.getType().getElementType()) + " *const " +
              target.pointer + " = " + getAddress(access) + ";");
    Value root = skipReshapes(target.tile);
    target.isCopy = root.getDefiningOp<kern::LoadOp>() &&
                    Access::of(root.getDefiningOp())->isContiguous();
    if (!target.isCopy && place.vector % 2 == 0 && isRounded(target.tile))
      target.floats = fresh("f");
    if (isHeld(target.tile) && !held.contains(target.tile)) {
      // Loads that follow find the tile in registers.
      std::string array = fresh("held");
      int64_t bytes = getBytes(access.getType().getElementType());
      helpers.use(Helper::Words);
      text.line("Words<" + Twine(place.vector * bytes) + "> " + array + "[" +
                Twine(place.rounds) + "];");
      target.words = array + "[k]";
      place.isUnrolled = true;
    }
    targets.push_back(target);
  }

  auto before = [&]() -> LogicalResult {
    for (Target &target : targets) {
      int64_t bytes = getBytes(target.access.getType().getElementType());
      if (target.isCopy) {
        Value root = skipReshapes(target.tile), holder = getHolder(root);
        bool isRead = holder && held.contains(holder);
        std::string from = isRead ? held[holder] + "[k]" : leaves[root];
        if (target.words.empty())
          target.words = from;
        else
          text.line(target.words + " = " + from + ";");
        continue;
      }
      if (target.words.empty()) {
        target.words = fresh("w");
        helpers.use(Helper::Words);
        text.line("Words<" + Twine(layout.vector * bytes) + "> " +
                  target.words + ";");
      }
      if (!target.floats.empty())
        text.line("float " + target.floats + "[" + Twine(layout.vector) + "];");
    }
    return success();
  };
  auto inner = [&]() -> LogicalResult {
    for (Target &target : targets) {
      if (target.isCopy)
        continue;
      bool isUnrounded = !target.floats.empty();
      auto value = getOwned(
          isUnrounded ? skipReshapes(target.tile) : target.tile, isUnrounded);
      if (failed(value))
        return failure();
      if (isUnrounded)
        text.line(target.floats + "[j] = " + *value + ";");
      else {
        helpers.use(Helper::Put);
        text.line("put(" + target.words + ", j, " + *value + ");");
      }
    }
    return success();
  };
  auto after = [&]() -> LogicalResult {
    for (Target &target : targets) {
      if (!target.floats.empty()) {
        helpers.use(Helper::Bf16x2);
        text.unroll();
        text.line("for (int j = 0; j < " + Twine(layout.vector) + "; j += 2)");
        text.line("  " + target.words + ".at[j / 2] = bf16x2_of(" +
                  target.floats + "[j], " + target.floats + "[j + 1]);");
      }
      helpers.use(Helper::Write);
      text.line("write<" + getAligned(target.access, layout.vector) + ">(" +
                target.pointer + " + e, " + target.words + ");");
    }
    return success();
  };
  bool computes = llvm::any_of(
      targets, [](const Target &target) { return !target.isCopy; });
  if (failed(emitOwned(place, consumer.tiles, before,
                       computes ? Body(inner) : Body(nullptr), after)))
    return failure();
  for (Target &target : targets)
    if (isHeld(target.tile) && !held.contains(target.tile))
      held[target.tile] = StringRef(target.words).drop_back(3).str();
  return success();
}

LogicalResult RowsEmitter::beginCarried(scf::ForOp loop,
                                        ArrayRef<unsigned> tiles) {
  const Consumer &consumer = *analysis->getConsumer(loop);
  synchronise(consumer, Who::Owner);
  Layout place = getLayout(consumer.elements);
  place.isUnrolled = true;
  SmallVector<std::string> arrays;
  int64_t registers = 0;
  for (unsigned number : tiles) {
    Type element = getTileType(loop.getInitArgs()[number]).getElementType();
    arrays.push_back(fresh("sums"));
    text.line(getTypeName(element) + " " + arrays.back() + "[" +
              Twine(place.rounds * place.vector) + "];");
    registers += place.rounds * place.vector *
                 llvm::divideCeilSigned(getBytes(element), (int64_t)4);
  }
  if (registers > mostHeldRegisters)
    return decline(loop, "carries tiles of " + Twine(registers) +
                             " registers of each thread");
  auto inner = [&]() -> LogicalResult {
    for (auto [number, array] : llvm::zip(tiles, arrays)) {
      auto value = getOwned(loop.getInitArgs()[number]);
      if (failed(value))
        return failure();
      text.line(array + "[k * " + Twine(place.vector) + " + j] = " + *value +
                ";");
    }
    return success();
  };
  if (failed(emitOwned(place, consumer.tiles, nullptr, inner, nullptr)))
    return failure();
  for (auto [number, array] : llvm::zip(tiles, arrays))
    carried[loop.getRegionIterArgs()[number]] = array;
  return success();
}

LogicalResult RowsEmitter::assignCarried(scf::ForOp loop,
                                         ArrayRef<unsigned> tiles) {
  const Consumer &consumer =
      *analysis->getConsumer(loop.getBody()->getTerminator());
  synchronise(consumer, Who::Owner);
  Layout place = getLayout(consumer.elements);
  place.isUnrolled = true;
  auto inner = [&]() -> LogicalResult {
    SmallVector<std::string> next;
    for (unsigned number : tiles) {
      auto value = getOwned(loop.getYieldedValues()[number]);
      if (failed(value))
        return failure();
      next.push_back(*value);
    }
    for (auto [number, value] : llvm::zip(tiles, next))
      text.line(carried[loop.getRegionIterArgs()[number]] + "[k * " +
                Twine(place.vector) + " + j] = " + value + ";");
    return success();
  };
  return emitOwned(place, consumer.tiles, nullptr, inner, nullptr);
}

void RowsEmitter::endCarried(scf::ForOp loop, ArrayRef<unsigned> tiles) {
  for (unsigned number : tiles)
    carried[loop.getResult(number)] = carried[loop.getRegionIterArgs()[number]];
}

LogicalResult RowsEmitter::emitExtract(tensor::ExtractOp extract) {
  synchronise(*analysis->getConsumer(extract), Who::Anyone);
  SmallVector<std::string> index;
  for (Value position : extract.getIndices())
    index.push_back(names.get(position));
  auto value = getElement(extract.getTensor(), index);
  if (failed(value))
    return failure();
  names.set(extract, *value);
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

std::string RowsEmitter::getCombined(const Combiner &combiner, StringRef a,
                                     StringRef b) {
  Names operands(&names);
  bool isFirst = combiner.op->getOperand(0) == combiner.sum;
  operands.set(combiner.sum, a);
  operands.set(combiner.op->getOperand(isFirst ? 1 : 0), b);
  return *scalars.getExpression(combiner.op, operands);
}

/// Adds up what each thread owns.
LogicalResult RowsEmitter::emitPartialSums(linalg::GenericOp op,
                                           ArrayRef<Combiner> combiners,
                                           ArrayRef<std::string> sums) {
  const Consumer &consumer = *analysis->getConsumer(op);
  synchronise(consumer, Who::Owner);
  Layout place = getLayout(consumer.elements);
  SmallVector<Value> terms, tiles;
  for (const Combiner &combiner : combiners)
    terms.push_back(combiner.term);
  for (OpOperand *operand : op.getDpsInputOperands())
    if (op.getMatchingIndexingMap(operand).isIdentity())
      tiles.push_back(operand->get());
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto inner = [&]() -> LogicalResult {
    SmallVector<std::string> dims = delinearize("e + j", sizes);
    Names payload(&names);
    auto operand = [&](OpOperand &operand) -> FailureOr<std::string> {
      if (isa<RankedTensorType>(operand.get().getType()) &&
          op.getMatchingIndexingMap(&operand).isIdentity())
        return getOwned(operand.get());
      return getOperand(op, operand, dims);
    };
    if (failed(emitPayload(op, terms, dims, operand, payload)))
      return failure();
    for (auto [combiner, sum] : llvm::zip(combiners, sums)) {
      std::string term = payload.get(combiner.term);
      text.line(sum + " = " + getCombined(combiner, sum, term) + ";");
    }
    return success();
  };
  return emitOwned(place, tiles, nullptr, inner, nullptr);
}

/// Combines the sums of all threads of the group; all get the result.
void RowsEmitter::emitCombination(ArrayRef<Combiner> combiners,
                                  ArrayRef<std::string> sums) {
  auto shuffle = [&](int64_t lanes, StringRef mask) {
    text.unroll();
    text.open("for (int o = " + Twine(lanes / 2) + "; o > 0; o /= 2)");
    for (auto [combiner, sum] : llvm::zip(combiners, sums)) {
      std::string other = fresh("v");
      StringRef type = getTypeName(combiner.op->getResult(0).getType());
      // Shuffles take words.
      std::string value = getBytes(combiner.op->getResult(0).getType()) < 4
                              ? "int(" + sum + ")"
                              : sum;
      text.line("const " + type + " " + other + " = " + type +
                "(__shfl_xor_sync(" + mask + ", " + value + ", o));");
      text.line(sum + " = " + getCombined(combiner, sum, other) + ";");
    }
    text.close();
  };
  if (group() == 1)
    return;
  if (group() <= 32)
    return shuffle(group(), "mask");

  int64_t warps = group() / 32;
  shuffle(32, "~0u");
  SmallVector<std::string> arrays;
  for (auto [combiner, sum] : llvm::zip(combiners, sums)) {
    arrays.push_back(fresh("partial"));
    declarations.line("__shared__ " +
                      getTypeName(combiner.op->getResult(0).getType()) + " " +
                      arrays.back() + "[" + Twine(warps) + "];");
  }
  // Of the round before, some threads may not have read them yet.
  if (loopDepth != 0)
    text.line("__syncthreads();");
  text.open("if (lane % 32 == 0)");
  for (auto [array, sum] : llvm::zip(arrays, sums))
    text.line(array + "[lane / 32] = " + sum + ";");
  text.close();
  text.line("__syncthreads();");
  sync.barrier();
  if (warps <= 8) {
    for (auto [combiner, array, sum] : llvm::zip(combiners, arrays, sums))
      text.line(sum + " = " + array + "[0];");
    text.unroll();
    text.open("for (int w = 1; w < " + Twine(warps) + "; ++w)");
    for (auto [combiner, array, sum] : llvm::zip(combiners, arrays, sums))
      text.line(sum + " = " + getCombined(combiner, sum, array + "[w]") + ";");
    text.close();
    return;
  }
  for (auto [combiner, array, sum] : llvm::zip(combiners, arrays, sums))
    text.line(sum + " = lane % 32 < " + Twine(warps) + " ? " + array +
              "[lane % 32] : " + combiner.identity + ";");
  shuffle(llvm::PowerOf2Ceil(warps), "~0u");
}

/// In the order of the elements, by one thread.
LogicalResult RowsEmitter::emitSequence(linalg::GenericOp op,
                                        ArrayRef<std::string> sums) {
  const Consumer &consumer = *analysis->getConsumer(op);
  synchronise(consumer, Who::Anyone);
  Block *block = op.getBlock();
  std::string leader = getLeader();
  if (!leader.empty())
    text.open("if (" + leader + ")");
  SmallVector<std::string> dims;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    dims.push_back(fresh("d"));
    if (dim + 1 == sizes.size())
      text.unroll(8);
    text.open("for (int " + dims.back() + " = 0; " + dims.back() + " < " +
              Twine(size) + "; ++" + dims.back() + ")");
  }
  forgetElements();
  Names payload(&names);
  for (auto [argument, sum] : llvm::zip(op.getRegionOutputArgs(), sums))
    payload.set(argument, sum);
  SmallVector<Value> wanted(block->getTerminator()->getOperands());
  if (failed(emitPayload(
          op, wanted, dims,
          [&](OpOperand &operand) { return getOperand(op, operand, dims); },
          payload)))
    return failure();
  for (auto [sum, value] : llvm::zip(sums, wanted))
    text.line(sum + " = " + payload.get(value) + ";");
  forgetElements();
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    text.close();
  if (leader.empty())
    return success();
  text.close();
  if (group() <= 32) {
    for (const std::string &sum : sums)
      text.line(sum + " = __shfl_sync(mask, " + sum + ", 0, " + Twine(group()) +
                ");");
    return success();
  }
  if (loopDepth != 0)
    text.line("__syncthreads();");
  SmallVector<std::string> arrays;
  for (auto [sum, result] : llvm::zip(sums, op.getResults())) {
    arrays.push_back(fresh("partial"));
    declarations.line("__shared__ " +
                      getTypeName(getTileType(result).getElementType()) + " " +
                      arrays.back() + "[1];");
    text.line("if (" + leader + ")");
    text.line("  " + arrays.back() + "[0] = " + sum + ";");
  }
  text.line("__syncthreads();");
  sync.barrier();
  for (auto [array, sum] : llvm::zip(arrays, sums))
    text.line(sum + " = " + array + "[0];");
  return success();
}

LogicalResult RowsEmitter::emitReduction(linalg::GenericOp op) {
  SmallVector<std::string> inits, sums;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    auto value = getElement(init.get(), {});
    if (failed(value))
      return failure();
    inits.push_back(*value);
  }
  std::optional<SmallVector<Combiner>> combiners = getCombiners(op);
  for (auto [number, init] : llvm::enumerate(op.getDpsInits())) {
    sums.push_back(fresh("sum"));
    std::string begin =
        combiners ? (*combiners)[number].identity : inits[number];
    text.line(getTypeName(getTileType(init).getElementType()) + " " +
              sums.back() + " = " + begin + ";");
  }
  if (combiners) {
    if (failed(emitPartialSums(op, *combiners, sums)))
      return failure();
    emitCombination(*combiners, sums);
    for (auto [combiner, sum, init] : llvm::zip(*combiners, sums, inits))
      if (init != combiner.identity)
        text.line(sum + " = " + getCombined(combiner, init, sum) + ";");
  } else if (failed(emitSequence(op, sums))) {
    return failure();
  }
  for (auto [result, sum] : llvm::zip(op.getResults(), sums))
    results[result] = sum;
  return success();
}

LogicalResult RowsEmitter::emitTile(Operation *op) {
  if (auto load = dyn_cast<kern::LoadOp>(op))
    return emitLoad(load);
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return emitExtract(extract);
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    if (generic.getNumReductionLoops() == 0 || generic->use_empty())
      return success();
    return emitReduction(generic);
  }
  const Consumer &consumer = *analysis->getConsumer(op);
  return consumer.at == op ? emitStores(consumer) : success();
}

FailureOr<KernelText> cuda::emitRows(kern::FuncOp kernel,
                                     kern::EmissionAttr emission,
                                     StringRef symbol, Decline &declined) {
  RowsEmitter emitter(kernel, emission);
  auto text = emitter.run(symbol);
  declined = emitter.declined;
  return text;
}
