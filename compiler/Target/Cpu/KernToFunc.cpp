//===- KernToFunc.cpp - A kernel as a loop over its items -----------------===//
//
// One-shot bufferization sees tensors and does not know that two tiles of one
// memref may overlap. So that a kernel can work in place, this file decides for
// each load whether reading the memref late would see a later store (then the
// tile is copied out first), and for each store whether its tile may be
// computed where it is going to be stored.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cpu/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kern;

namespace {

/// How a store is carried out.
struct Placement {
  /// The op that writes the memref: the store, or the first op that computes
  /// the tile in place.
  Operation *writer;
  /// If computed in place: the operand that takes the destination instead of a
  /// tensor.empty, and the reshapes between its shape and the store's, from the
  /// store inwards.
  OpOperand *init = nullptr;
  SmallVector<Operation *> reshapes;
};

class TileConverter {
public:
  explicit TileConverter(Block *body) : body(body) {}
  void run();

private:
  void placeStore(StoreOp store);
  bool canReadLate(LoadOp load);
  bool canReadInPlace(LoadOp load, OpOperand &use, StoreOp store);
  Value createView(OpBuilder &builder, Location loc, Value memref,
                   ValueRange indices, RankedTensorType tile);
  void convertStore(StoreOp store);
  void convertLoad(LoadOp load);

  Block *body;
  llvm::MapVector<StoreOp, Placement> placements;
  DominanceInfo dominance;
};

} // namespace

static Value getWrittenMemRef(Operation *op) {
  if (auto store = dyn_cast<StoreOp>(op))
    return store.getDest();
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getMemRef();
  return {};
}

static bool isAccess(Operation *op) {
  return isa<LoadOp, StoreOp, memref::LoadOp, memref::StoreOp>(op);
}

/// Whether `memref` is not touched from `writer` on until `store`.
static bool isQuietBetween(Value memref, Operation *writer, StoreOp store) {
  return llvm::none_of(memref.getUsers(), [&](Operation *user) {
    if (user == store || !isAccess(user))
      return false;
    Operation *ancestor = store->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && !ancestor->isBeforeInBlock(writer) &&
           ancestor->isBeforeInBlock(store);
  });
}

void TileConverter::placeStore(StoreOp store) {
  Placement &placement = placements[store];
  placement.writer = store;
  Value dest = store.getDest();
  bool readsBack = llvm::any_of(dest.getUsers(), [](Operation *user) {
    return isa<LoadOp, memref::LoadOp>(user);
  });

  Operation *writer = nullptr;
  SmallVector<Operation *> reshapes;
  OpOperand *use = &store.getTileMutable();
  while (Operation *op = use->get().getDefiningOp()) {
    if (isa<tensor::EmptyOp>(op)) {
      bool isDefined =
          writer && llvm::all_of(store.getIndices(), [&](Value index) {
            return dominance.properlyDominates(index, writer);
          });
      if (isDefined && isQuietBetween(dest, writer, store))
        placement = {writer, use, reshapes};
      return;
    }
    if (!use->get().hasOneUse() || op->getBlock() != store->getBlock())
      return;
    if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op) && !writer) {
      reshapes.push_back(op);
      use = &op->getOpOperand(0);
      continue;
    }
    // What reads the memref back may only overwrite it element by element.
    if (writer && readsBack)
      return;
    unsigned number = cast<OpResult>(use->get()).getResultNumber();
    if (auto generic = dyn_cast<linalg::LinalgOp>(op))
      use = generic.getDpsInitOperand(number);
    else if (auto loop = dyn_cast<scf::ForOp>(op); loop && !readsBack)
      use = &loop.getInitArgsMutable()[number];
    else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op);
             insert && !readsBack)
      use = &insert.getDestMutable();
    else
      return;
    writer = op;
  }
}

/// Whether `use` reads each element just before the same element is written by
/// the op that computes `store`'s tile in place.
bool TileConverter::canReadInPlace(LoadOp load, OpOperand &use, StoreOp store) {
  auto generic = dyn_cast<linalg::LinalgOp>(use.getOwner());
  Placement &placement = placements[store];
  if (!generic || placement.init->getOwner() != generic ||
      !placement.reshapes.empty() || generic.getNumReductionLoops() != 0)
    return false;
  AffineMap output = generic.getMatchingIndexingMap(placement.init);
  return output.isPermutation() &&
         generic.getMatchingIndexingMap(&use) == output &&
         load.getTile().getType() == store.getTile().getType() &&
         load.getIndices() == store.getIndices();
}

/// Whether no store to the memref can come between the load and a read of its
/// tile.
bool TileConverter::canReadLate(LoadOp load) {
  SmallVector<Operation *> writers;
  llvm::SmallDenseMap<Operation *, StoreOp> inPlace;
  for (Operation *user : load.getSource().getUsers()) {
    if (getWrittenMemRef(user) != load.getSource())
      continue;
    Operation *writer = user;
    if (auto store = dyn_cast<StoreOp>(user)) {
      writer = placements[store].writer;
      if (placements[store].init)
        inPlace[writer] = store;
    }
    // A writer outside of the load's block runs before the load or after the
    // block's end, which the tile does not outlive.
    if (Operation *ancestor = load->getBlock()->findAncestorOpInBlock(*writer);
        ancestor && load->isBeforeInBlock(ancestor))
      writers.push_back(writer);
  }
  if (writers.empty())
    return true;

  SmallVector<Value> aliases = {load.getTile()};
  while (!aliases.empty()) {
    Value alias = aliases.pop_back_val();
    for (OpOperand &use : alias.getUses()) {
      Operation *user = use.getOwner();
      if (isa<tensor::ExtractSliceOp, tensor::CollapseShapeOp,
              tensor::ExpandShapeOp, tensor::CastOp>(user)) {
        aliases.push_back(user->getResult(0));
        continue;
      }
      if (!isa<linalg::LinalgOp, tensor::ExtractOp, tensor::InsertSliceOp,
               StoreOp>(user))
        return false;
      Operation *reader = load->getBlock()->findAncestorOpInBlock(*user);
      for (Operation *writer : writers) {
        Operation *ancestor = load->getBlock()->findAncestorOpInBlock(*writer);
        if (reader->isBeforeInBlock(ancestor))
          continue;
        if (writer == user && alias == load.getTile() &&
            inPlace.count(writer) && canReadInPlace(load, use, inPlace[writer]))
          continue;
        return false;
      }
    }
  }
  return true;
}

Value TileConverter::createView(OpBuilder &builder, Location loc, Value memref,
                                ValueRange indices, RankedTensorType tile) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<OpFoldResult> offsets = getAsOpFoldResult(indices);
  SmallVector<OpFoldResult> sizes(type.getRank() - tile.getRank(),
                                  builder.getIndexAttr(1));
  for (int64_t size : tile.getShape())
    sizes.push_back(builder.getIndexAttr(size));
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  auto viewType = memref::SubViewOp::inferRankReducedResultType(
      tile.getShape(), type, offsets, sizes, strides);
  return memref::SubViewOp::create(builder, loc, viewType, memref, offsets,
                                   sizes, strides);
}

void TileConverter::convertStore(StoreOp store) {
  Placement &placement = placements[store];
  Location loc = store.getLoc();
  auto tileType = cast<RankedTensorType>(store.getTile().getType());
  OpBuilder builder(store);
  if (placement.init)
    builder.setInsertionPoint(placement.writer);
  Value view =
      createView(builder, loc, store.getDest(), store.getIndices(), tileType);
  if (placement.init) {
    Value dest = bufferization::ToTensorOp::create(
        builder, loc, tileType, view, /*restrict=*/true, /*writable=*/true);
    for (Operation *reshape : placement.reshapes) {
      auto type = cast<RankedTensorType>(reshape->getOperand(0).getType());
      if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(reshape))
        dest = tensor::ExpandShapeOp::create(
            builder, loc, type, dest, collapse.getReassociationIndices());
      else
        dest = tensor::CollapseShapeOp::create(
            builder, loc, type, dest,
            cast<tensor::ExpandShapeOp>(reshape).getReassociationIndices());
    }
    placement.init->set(dest);
    builder.setInsertionPoint(store);
  }
  bufferization::MaterializeInDestinationOp::create(
      builder, loc, TypeRange(), store.getTile(), view, /*restrict=*/true,
      /*writable=*/true);
  store.erase();
}

void TileConverter::convertLoad(LoadOp load) {
  OpBuilder builder(load);
  Location loc = load.getLoc();
  RankedTensorType type = cast<RankedTensorType>(load.getTile().getType());
  Value view =
      createView(builder, loc, load.getSource(), load.getIndices(), type);
  if (!canReadLate(load)) {
    auto bufferType = MemRefType::get(type.getShape(), type.getElementType());
    Value buffer = memref::AllocOp::create(builder, loc, bufferType,
                                           builder.getI64IntegerAttr(64));
    memref::CopyOp::create(builder, loc, view, buffer);
    view = buffer;
  }
  Value tile = bufferization::ToTensorOp::create(builder, loc, type, view,
                                                 /*restrict=*/true);
  load.replaceAllUsesWith(tile);
  load.erase();
}

void TileConverter::run() {
  SmallVector<LoadOp> loads;
  body->walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      loads.push_back(load);
    if (auto store = dyn_cast<StoreOp>(op))
      placements.insert({store, {}});
  });
  for (StoreOp store : llvm::make_first_range(placements))
    placeStore(store);
  for (LoadOp load : loads)
    convertLoad(load);
  for (StoreOp store : llvm::make_first_range(placements))
    convertStore(store);
}

/// Bare pointers are for memrefs of static shape. A leading dimension never
/// takes part in an address, so any bound does that no index reaches.
static MemRefType withStaticShape(MemRefType type) {
  SmallVector<int64_t> shape(type.getShape());
  if (ShapedType::isDynamic(shape.front()))
    shape.front() = int64_t(1) << 40;
  return MemRefType::get(shape, type.getElementType());
}

FailureOr<func::FuncOp> cpu::convertKernelToFunc(FuncOp kernel,
                                                 unsigned vectorBits) {
  Location loc = kernel.getLoc();
  OpBuilder builder(kernel);
  SmallVector<Type> types;
  for (BlockArgument argument : kernel.getArguments()) {
    auto memref = dyn_cast<MemRefType>(argument.getType());
    types.push_back(memref ? Type(withStaticShape(memref))
                           : argument.getType());
  }
  types.append(2, builder.getIndexType()); // begin, end

  auto function =
      func::FuncOp::create(builder, loc, (kernel.getSymName() + ".items").str(),
                           builder.getFunctionType(types, {}));
  function.setPrivate();
  auto strings = [&](StringRef key, StringRef value) -> Attribute {
    return builder.getStrArrayAttr({key, value});
  };
  // Not inlined into the entry: parameters say more about aliasing than the
  // metadata that inlining leaves of them.
  function->setAttr(
      "passthrough",
      builder.getArrayAttr(
          {builder.getStringAttr("noinline"), builder.getStringAttr("nounwind"),
           strings("prefer-vector-width", std::to_string(vectorBits))}));
  Block *entry = function.addEntryBlock();
  for (auto [index, type] : llvm::enumerate(types)) {
    if (!isa<MemRefType>(type))
      continue;
    function.setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(),
                        builder.getUnitAttr());
    function.setArgAttr(index, LLVM::LLVMDialect::getNonNullAttrName(),
                        builder.getUnitAttr());
    function.setArgAttr(index, LLVM::LLVMDialect::getNoUndefAttrName(),
                        builder.getUnitAttr());
  }

  builder.setInsertionPointToStart(entry);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  auto loop =
      scf::ForOp::create(builder, loc, entry->getArgument(types.size() - 2),
                         entry->getArgument(types.size() - 1), one);
  func::ReturnOp::create(builder, loc);

  Block &body = kernel.getBody().front();
  for (auto [from, to] :
       llvm::zip(kernel.getArguments(), entry->getArguments()))
    from.replaceAllUsesWith(to);
  kernel.getItem().replaceAllUsesWith(loop.getInductionVar());
  body.getTerminator()->erase();
  Block *loopBody = loop.getBody();
  loopBody->getOperations().splice(Block::iterator(loopBody->getTerminator()),
                                   body.getOperations());
  kernel.erase();
  TileConverter(loopBody).run();
  return function;
}
