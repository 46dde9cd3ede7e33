//===- Rows.cpp - Kernels with tiles in registers -------------------------===//

#include "compiler/Target/Cuda/Families/Rows.h"

#include "compiler/Target/Cuda/Families/RowsEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

/// Registers of a thread for tiles that are held although they could be read
/// again, and at most.
static constexpr int64_t heldRegisters = 64, mostHeldRegisters = 128;

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
  int64_t rounds = llvm::divideCeilSigned(vectors, group());
  // As many reads on the way as there are registers for.
  int64_t bytes =
      std::max<int64_t>(1, analysis->classes[elements].bytes * vector);
  int64_t unrolled = std::min(rounds, std::clamp<int64_t>(128 / bytes, 1, 8));
  return {elements, vector, rounds, vectors % group() != 0, unrolled};
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
  if (!usesMask)
    return;
  if (size == 32)
    prologue.line("const u32 mask = ~0u;");
  else
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
    text.line("__syncwarp(" + getMask() + ");");
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

/// Calls `leaf` for each load, and each tile in registers, that the element of
/// `tile` at a place depends on by way of the element at the same place.
void RowsEmitter::visitLeaves(Value tile, llvm::DenseSet<Value> &visited,
                              llvm::function_ref<void(Value)> leaf) {
  if (!isa<RankedTensorType>(tile.getType()) || !visited.insert(tile).second)
    return;
  if (isInRegisters(tile))
    return leaf(tile);
  Operation *op = tile.getDefiningOp();
  if (!op)
    return;
  if (auto load = dyn_cast<kern::LoadOp>(op)) {
    if (Access::of(load)->isContiguous())
      leaf(tile);
    return;
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return visitLeaves(op->getOperand(0), visited, leaf);
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
      visitLeaves(operand.get(), visited, leaf);
}

LogicalResult RowsEmitter::emitOwned(const Layout &newLayout,
                                     ArrayRef<Value> tiles, Body before,
                                     Body inner, Body after) {
  layout = newLayout;
  leaves.clear();
  SmallVector<Value> loads;
  llvm::DenseSet<Value> visited;
  for (Value tile : tiles)
    visitLeaves(tile, visited, [&](Value leaf) {
      // Registers have no addresses: the number of the round must be known.
      if (isInRegisters(leaf))
        layout.unrolled = layout.rounds;
      else
        loads.push_back(leaf);
    });
  if (layout.unrolled == layout.rounds)
    text.unroll();
  else
    text.unroll(layout.unrolled);
  text.open("for (int k = 0; k < " + Twine(layout.rounds) + "; ++k)");
  std::string place =
      group() == 1 ? "k" : "(k * " + std::to_string(group()) + " + lane)";
  size_t begin = text.size();
  text.line("const int e = " + place + " * " + Twine(layout.vector) + ";");
  size_t end = text.size();
  if (layout.isGuarded)
    text.open("if (e < " + Twine(layout.elements) + ")");
  for (Value load : loads) {
    leaves[load] = fresh("w");
    text.line("const auto " + leaves[load] + " = " +
              getRead(*Access::of(load.getDefiningOp()), pointers[load]) + ";");
  }
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
  text.dropUnless("e", begin, end);
  text.close();
  leaves.clear();
  return success();
}

/// Whether the elements of `tile` are made by rounding an f32 to bf16.
bool RowsEmitter::isRounded(Value tile) {
  tile = skipReshapes(tile);
  auto generic = tile.getDefiningOp<linalg::GenericOp>();
  if (!generic || !getTileType(tile).getElementType().isBF16() ||
      isInRegisters(tile))
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
  if (isInRegisters(tile))
    return fromWords(held[getHolder(tile)] + "[k]");
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
  Value holder = getHolder(tile);
  bool isRead = llvm::any_of(analysis->uses, [&](const TileUse &use) {
    return use.load == load && !(use.isOwned && holder && holder != tile);
  });
  if (!isRead)
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
  place.unrolled = place.rounds;
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
      place.unrolled = place.rounds;
    }
    targets.push_back(target);
  }

  auto before = [&]() -> LogicalResult {
    for (Target &target : targets) {
      int64_t bytes = getBytes(target.access.getType().getElementType());
      if (target.isCopy) {
        Value root = skipReshapes(target.tile);
        std::string from =
            isInRegisters(root) ? held[getHolder(root)] + "[k]" : leaves[root];
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
  place.unrolled = place.rounds;
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
  place.unrolled = place.rounds;
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
