//===- FunctionBuilderComm.cpp - Units, gradients and collectives ---------===//
//
// Every collective is given where the program has it, with a wait where its
// result is needed; exec-schedule-overlap moves gathers ahead and
// exec-insert-events orders streams.
//
//===----------------------------------------------------------------------===//

#include "compiler/Exec/FunctionBuilder.h"

using namespace mlir;
using namespace fsdpq;

SmallVector<int64_t> FunctionBuilder::getOrdinals(fsdp::UnitOp unit,
                                                  Layers layers) const {
  SmallVector<int64_t> result;
  for (int64_t layer : layers)
    result.push_back(Storage::getOrdinal(unit, layer));
  if (result.empty() || !unit.getLayers())
    result.assign(1, 0);
  return result;
}

void FunctionBuilder::makeWait(Location loc, int64_t event, ValueRange holds) {
  exec::WaitOp::create(builder, loc, event, holds, exec::computeStream);
}

//===----------------------------------------------------------------------===//
// Buffers of units
//===----------------------------------------------------------------------===//

/// Whether the next layer's gather of a unit, which `start` gathers in a layer's
/// body, may start before this layer has released its own. Gathers start when
/// the one before has come: a unit that the layer needs from the beginning is
/// gathered for the next layer after this layer's last wait, any other after the
/// next layer's first.
static bool overlapsNext(fsdp::AllGatherStartOp start) {
  for (Operation &op : *start->getBlock()) {
    if (&op == start)
      break;
    if (isa<fsdp::WaitOp>(op)) // of a group that comes before
      return false;
  }
  Operation *lastWait = nullptr, *end = nullptr;
  for (auto wait : start->getBlock()->getOps<fsdp::WaitOp>())
    lastWait = wait;
  auto wait = cast<fsdp::WaitOp>(*start->getUsers().begin());
  for (Operation *user : wait.getGathered().getUsers())
    if (isa<fsdp::ReleaseOp>(user))
      end = user;
  return !end || !end->isBeforeInBlock(lastWait);
}

void FunctionBuilder::prepareUnits(MutableArrayRef<tfm::LayerOp> kinds,
                                   ArrayRef<int32_t> kindOf,
                                   ArrayRef<int64_t> order) {
  gathered.clear();
  gradients.clear();
  auto request = [&](llvm::MapVector<StringRef, UnitBuffer> &buffers,
                     StringRef name, int64_t layer, bool twoSlots) {
    auto [place, isNew] = buffers.insert({name, UnitBuffer()});
    UnitBuffer &buffer = place->second;
    if (isNew) {
      buffer.bytes = Storage::getBytes(storage.getUnit(name));
      buffer.event = events++;
    }
    buffer.sequence.insert({layer, (int64_t)buffer.sequence.size()});
    if (twoSlots)
      buffer.slots = 2;
  };
  llvm::SmallPtrSet<Operation *, 8> keptStarts;
  for (tfm::LayerOp kind : kinds)
    for (auto keep : kind.getBody().getOps<fsdp::KeepOp>())
      keptStarts.insert(keep.getGathered()
                            .getDefiningOp<fsdp::WaitOp>()
                            .getPending()
                            .getDefiningOp());
  for (int64_t layer : order) {
    Region &body = kinds[kindOf[layer]].getBody();
    for (auto start : body.getOps<fsdp::AllGatherStartOp>())
      if (keptStarts.contains(start))
        request(kept, start.getUnit(), layer, false);
      else
        request(gathered, start.getUnit(), layer, overlapsNext(start));
    // A reduction goes on beside the next layer.
    for (auto start : body.getOps<fsdp::GradientStartOp>())
      request(gradients, start.getUnit(), layer, true);
  }
  for (auto *buffers : {&gathered, &gradients, &kept})
    for (auto &[name, buffer] : *buffers) {
      if (buffer.storage)
        continue;
      int64_t count = buffer.sequence.size();
      buffer.slots = buffers == &kept ? count : std::min(buffer.slots, count);
      buffer.storage =
          makeAlloc((name + (buffers == &gradients ? ".gradient" : ".gathered")).str(),
                    buffer.slots * buffer.bytes);
    }
}

void FunctionBuilder::finishUnits() {
  for (auto &[name, buffer] : gradients)
    if (buffer.isReduced)
      makeWait(source.getLoc(), buffer.event, buffer.storage);
  gathered.clear();
  gradients.clear();
}

Value FunctionBuilder::getSlot(const UnitBuffer &buffer, Layers layers) {
  SmallVector<int64_t> offsets;
  for (int64_t layer : layers)
    offsets.push_back(buffer.sequence.lookup(layer) % buffer.slots * buffer.bytes);
  return makeSubslice(buffer.storage, buffer.bytes, offsets);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

void FunctionBuilder::buildGather(fsdp::AllGatherStartOp op, Layers layers) {
  fsdp::UnitOp unit = storage.getUnit(op.getUnit());
  SmallVector<int64_t> ordinals = getOrdinals(unit, layers);
  Value range = makeSlice(op.getUnit(), storage.getRange(op.getUnit()), ordinals);
  auto source = range.getDefiningOp<exec::SliceOp>();
  source.setUnitAttr(op.getUnitAttr());
  source.setOrdinalsAttr(getOrdinalsAttr(ordinals));
  Value whole;
  int64_t event;
  auto keep = kept.find(op.getUnit());
  auto slot = gathered.find(op.getUnit());
  bool isKept = keep != kept.end() && !layers.empty() &&
                keep->second.sequence.contains(layers.front());
  if (isKept || slot != gathered.end()) {
    UnitBuffer &buffer = isKept ? keep->second : slot->second;
    whole = getSlot(buffer, layers);
    event = buffer.event;
  } else {
    whole = makeAlloc((op.getUnit() + ".gathered").str(), Storage::getBytes(unit));
    event = events++;
  }
  gatherEvents[op] = event;
  exec::AllGatherOp::create(builder, op.getLoc(), range, whole,
                            Storage::getBytes(unit) / storage.getShards(),
                            exec::shardGroup, event, exec::gatherStream);
  slices[op.getPending()] = {whole};
}

void FunctionBuilder::buildKept(fsdp::KeptOp op, Layers layers) {
  slices[op.getGathered()] = {getSlot(kept.find(op.getUnit())->second, layers)};
}

LogicalResult FunctionBuilder::buildView(fsdp::ViewOp op, Layers layers) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  StringRef first = cast<SymbolRefAttr>(op.getParams()[0]).getLeafReference();
  fsdp::UnitOp unit = storage.getUnitOf(first);
  SmallVector<int64_t> ordinals = getOrdinals(unit, layers);
  bool isLocal = isa_and_nonnull<fsdp::LocalOp>(op.getGathered().getDefiningOp());
  auto view = [&](StringRef part, int64_t bytes) -> Value {
    int64_t offset = storage.findPart(first, part).getOffset();
    if (!isLocal)
      return makeMember(getOnly(op.getGathered()), offset, bytes, unit, ordinals);
    Storage::Place place = storage.getRange(unit.getSymName());
    place.offset += offset;
    place.bytes = bytes;
    return makeSlice(part == "data" ? first.str() : (first + "." + part).str(),
                     place, ordinals);
  };
  auto format = qt::getBlockFormat(type.getElementType());
  if (!format) {
    slices[op.getResult()] = {view("data", getTensorBytes(type))};
    return success();
  }
  if (op.getParams().size() != 1)
    return op.emitError("[FSDPQ-0502] quantised parameters that are used as "
                        "one must be dequantised one by one");
  // A kind's body is built once for each run of layers, so its values get new
  // slices each time.
  Slices parts;
  for (const qt::StoredPart &part :
       qt::getStoredParts(*format, type.getNumElements()))
    parts.push_back(view(part.name, part.bytes()));
  slices[op.getResult()] = std::move(parts);
  return success();
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

LogicalResult FunctionBuilder::buildGradient(fsdp::GradientOp op, Layers layers) {
  StringRef param = cast<SymbolRefAttr>(op.getParams()[0]).getLeafReference();
  fsdp::UnitOp unit = storage.getUnitOf(param);
  int64_t offset = storage.findPart(param, "data").getOffset();
  int64_t bytes = getTensorBytes(cast<RankedTensorType>(op.getResult().getType()));
  if (Value whole = currentGradients.lookup(unit.getSymName())) {
    slices[op.getResult()] = {makeSubslice(whole, bytes, offset)};
    return success();
  }
  bool isSummed = storage.hasGradientSum(unit.getSymName());
  if (!isSummed && storage.getShards() > 1)
    return op.emitError("[FSDPQ-0504] @")
           << unit.getSymName() << " has no whole gradient here; run "
           << "fsdp-insert-collectives";
  Storage::Place place = isSummed ? storage.getGradientSum(unit.getSymName())
                                  : storage.getGradientRange(unit.getSymName());
  place.offset += offset;
  place.bytes = bytes;
  slices[op.getResult()] = {makeSlice((param + ".gradient").str(), place,
                                      getOrdinals(unit, layers))};
  return success();
}

void FunctionBuilder::buildGradientStart(fsdp::GradientStartOp op, Layers layers) {
  int64_t bytes = Storage::getBytes(storage.getUnit(op.getUnit()));
  auto slot = gradients.find(op.getUnit());
  Value whole = slot == gradients.end()
                    ? makeAlloc((op.getUnit() + ".gradient").str(), bytes)
                    : getSlot(slot->second, layers);
  exec::FillOp::create(builder, op.getLoc(), whole,
                       kern::ExtentAttr::getConstant(builder.getContext(), bytes),
                       exec::computeStream);
  currentGradients[op.getUnit()] = whole;
}

void FunctionBuilder::buildReduceScatter(fsdp::ReduceScatterStartOp op,
                                         Layers layers) {
  fsdp::UnitOp unit = storage.getUnit(op.getUnit());
  int64_t elements = Storage::getBytes(unit) / 4 / storage.getShards();
  Value whole = currentGradients.lookup(op.getUnit());
  auto slot = gradients.find(op.getUnit());
  bool isOfLayers = slot != gradients.end();
  int64_t event = isOfLayers ? slot->second.event : events++;
  // The other slot is overwritten by the next layer.
  if (isOfLayers)
    makeWait(op.getLoc(), event, slot->second.storage);
  exec::ReduceScatterOp::create(
      builder, op.getLoc(), whole,
      makeSlice((op.getUnit() + ".gradient").str(),
                storage.getGradientRange(op.getUnit()), getOrdinals(unit, layers)),
      elements, builder.getF32Type(), storage.getShards(), /*accumulate=*/true,
      storage.getMesh().getDeterministic() ? exec::worldGroup : exec::shardGroup,
      event, exec::reduceStream);
  if (isOfLayers)
    slot->second.isReduced = true;
  else
    makeWait(op.getLoc(), event, whole);
  currentGradients.erase(op.getUnit());
}

void FunctionBuilder::buildReduceSums(fsdp::ReduceSumsOp op) {
  fsdp::UnitOp unit = storage.getUnit(op.getUnit());
  SmallVector<int64_t> ordinals =
      llvm::to_vector(llvm::seq<int64_t>(Storage::countLayers(unit)));
  Storage::Place sum = storage.getGradientSum(op.getUnit());
  int64_t event = events++;
  exec::LoopOp loop = openLoop(op.getLoc(), ordinals.size());
  exec::ReduceScatterOp::create(
      builder, op.getLoc(), makeSlice((op.getUnit() + ".sum").str(), sum, ordinals),
      makeSlice((op.getUnit() + ".gradient").str(),
                storage.getGradientRange(op.getUnit()), ordinals),
      Storage::getBytes(unit) / 4 / storage.getShards(), builder.getF32Type(),
      storage.getShards(), /*accumulate=*/false, exec::shardGroup, event,
      exec::reduceStream);
  closeLoop(loop);
  makeWait(op.getLoc(), event, {});
  sum.bytes *= ordinals.size();
  sum.stride = 0;
  exec::FillOp::create(
      builder, op.getLoc(), makeSlice((op.getUnit() + ".sum").str(), sum, {0}),
      kern::ExtentAttr::getConstant(builder.getContext(), sum.bytes),
      exec::computeStream);
}

void FunctionBuilder::buildReduceReplicas(fsdp::ReduceReplicasOp op) {
  Storage::Place place = storage.getFlat(op.getUnit(), "gradient");
  int64_t event = events++;
  exec::AllReduceOp::create(
      builder, op.getLoc(),
      makeSlice((op.getUnit() + ".gradient").str(), place, {0}), place.bytes / 4,
      builder.getF32Type(), exec::replicaGroup, event, exec::reduceStream);
  makeWait(op.getLoc(), event, {});
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void FunctionBuilder::buildAllReduce(fsdp::AllReduceOp op) {
  shareSlices(op.getResult(), op.getValue());
  fsdp::MeshOp mesh = storage.getMesh();
  if (!mesh || (op.getWorld() ? (int64_t)mesh.getRanks() : storage.getShards()) == 1)
    return;
  auto type = cast<RankedTensorType>(op.getValue().getType());
  int64_t event = events++;
  Value data = getOnly(op.getValue());
  exec::AllReduceOp::create(builder, op.getLoc(), data, type.getNumElements(),
                            type.getElementType(),
                            op.getWorld() ? exec::worldGroup : exec::shardGroup,
                            event, exec::reduceStream);
  makeWait(op.getLoc(), event, data);
}

void FunctionBuilder::buildAllGather(fsdp::AllGatherOp op) {
  Value from = getOnly(op.getValue());
  Value to = makeAlloc("all", getTensorBytes(
                                  cast<RankedTensorType>(op.getResult().getType())));
  int64_t event = events++;
  exec::AllGatherOp::create(builder, op.getLoc(), from, to, getBytes(from),
                            exec::shardGroup, event, exec::reduceStream);
  makeWait(op.getLoc(), event, {from, to});
  slices[op.getResult()] = {to};
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

void FunctionBuilder::buildStore(fsdp::StoreOp op) {
  fsdp::UnitOp unit = storage.getUnit(op.getUnit());
  int64_t bytes = Storage::getBytes(unit), shards = storage.getShards();
  Storage::Place loading = storage.getLoadBuffer();
  loading.bytes = bytes;
  Value whole = makeSlice((op.getUnit() + ".loading").str(), loading, {0});
  // Level 0: the function's index is the layer's ordinal.
  Value range = makeSlice(
      op.getUnit(), storage.getRange(op.getUnit()),
      llvm::to_vector(llvm::seq<int64_t>(Storage::countLayers(unit))));
  fsdp::MeshOp mesh = storage.getMesh();
  if (!mesh || mesh.getRanks() == 1) {
    exec::CopyOp::create(builder, op.getLoc(), whole, range,
                         kern::ExtentAttr::getConstant(builder.getContext(), bytes),
                         exec::computeStream);
    return;
  }
  int64_t event = events++;
  exec::ReduceScatterOp::create(builder, op.getLoc(), whole, range, bytes / shards,
                                builder.getI8Type(), shards, /*accumulate=*/false,
                                exec::worldGroup, event, exec::reduceStream);
  makeWait(op.getLoc(), event, {});
}

/// Piece `piece` of a part starts `piece * bytes` into it: level 0.
static SmallVector<int64_t> getPieces(int64_t pieces) {
  return llvm::to_vector(llvm::seq<int64_t>(pieces));
}

void FunctionBuilder::buildPart(fsdp::PartOp op) {
  int64_t bytes = getTensorBytes(cast<RankedTensorType>(op.getResult().getType()));
  Storage::Place place = storage.getLoadBuffer();
  place.offset += storage.findPart(op.getParam(), op.getPart()).getOffset();
  place.stride = place.bytes = bytes;
  slices[op.getResult()] = {makeSlice((op.getParam() + "." + op.getPart()).str(),
                                      place, getPieces(op.getPieces()))};
}

void FunctionBuilder::buildScratch(fsdp::ScratchOp op) {
  int64_t bytes = getTensorBytes(cast<RankedTensorType>(op.getResult().getType()));
  slices[op.getResult()] = {makeSlice(op.getName(),
                                      storage.getScratch(op.getName(), bytes),
                                      getPieces(op.getPieces()))};
}
