#include "compiler/Exec/FunctionBuilder.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdpq;

FunctionBuilder::FunctionBuilder(Storage &storage, tfm::FuncOp source,
                                 exec::FuncOp target)
    : storage(storage), source(source), target(target),
      builder(target.getContext()) {
  builder.setInsertionPointToEnd(&target.getBody().front());
}

//===----------------------------------------------------------------------===//
// Byte ranges
//===----------------------------------------------------------------------===//

int64_t FunctionBuilder::getBytes(Value slice) const {
  Operation *op = slice.getDefiningOp();
  if (auto alloc = dyn_cast<exec::AllocOp>(op))
    return alloc.getBytes();
  if (auto sub = dyn_cast<exec::SubsliceOp>(op))
    return sub.getBytes();
  return cast<exec::SliceOp>(op).getBytes();
}

Value FunctionBuilder::makeAlloc(StringRef name, int64_t bytes) {
  // At the start of the block: a part of it may take the place of a temporary
  // that was made earlier.
  OpBuilder at = OpBuilder::atBlockBegin(builder.getInsertionBlock());
  return exec::AllocOp::create(at, source.getLoc(),
                               exec::SliceType::get(at.getContext()), name, bytes);
}

namespace {
/// Offsets as a start and a step where they are regular, else a table.
struct Offsets {
  int64_t offset = 0, stride = 0;
  SmallVector<int64_t> table;

  explicit Offsets(ArrayRef<int64_t> offsets) : offset(offsets.front()) {
    if (offsets.size() < 2)
      return;
    stride = offsets[1] - offsets[0];
    for (size_t i = 2; i < offsets.size(); ++i)
      if (offsets[i] - offsets[i - 1] != stride) {
        offset = stride = 0;
        table.assign(offsets.begin(), offsets.end());
        return;
      }
  }
};
} // namespace

static DenseI64ArrayAttr getTable(Builder &builder, const Offsets &offsets) {
  return offsets.table.empty() ? DenseI64ArrayAttr()
                               : builder.getDenseI64ArrayAttr(offsets.table);
}

Value FunctionBuilder::makeSlice(StringRef name, const Storage::Place &place,
                                 ArrayRef<int64_t> ordinals) {
  SmallVector<int64_t> absolute;
  for (int64_t ordinal : ordinals)
    absolute.push_back(place.offset + ordinal * place.stride);
  Offsets offsets(absolute);
  return exec::SliceOp::create(
      builder, source.getLoc(), exec::SliceType::get(builder.getContext()), name,
      place.arena, offsets.offset, place.bytes, offsets.stride, level,
      getTable(builder, offsets), FlatSymbolRefAttr(), DenseI64ArrayAttr());
}

Value FunctionBuilder::makeSubslice(Value sourceSlice, int64_t bytes,
                                    ArrayRef<int64_t> positions) {
  Offsets offsets(positions);
  return exec::SubsliceOp::create(
      builder, source.getLoc(), exec::SliceType::get(builder.getContext()),
      sourceSlice, offsets.offset, bytes, offsets.stride, level,
      getTable(builder, offsets), FlatSymbolRefAttr(), DenseI64ArrayAttr());
}

DenseI64ArrayAttr
FunctionBuilder::getOrdinalsAttr(ArrayRef<int64_t> ordinals) {
  return builder.getDenseI64ArrayAttr(
      llvm::all_equal(ordinals) ? ordinals.take_front() : ordinals);
}

Value FunctionBuilder::makeMember(Value source, int64_t offset, int64_t bytes,
                                  fsdp::UnitOp unit,
                                  ArrayRef<int64_t> ordinals) {
  auto sub = makeSubslice(source, bytes, offset).getDefiningOp<exec::SubsliceOp>();
  sub.setUnitAttr(FlatSymbolRefAttr::get(unit.getSymNameAttr()));
  sub.setOrdinalsAttr(getOrdinalsAttr(ordinals));
  sub.setLevel(level); // of the ordinals
  return sub;
}

Value FunctionBuilder::makeOffset(Value slice, int64_t offset) {
  return offset == 0 ? slice
                     : makeSubslice(slice, getBytes(slice) - offset, offset);
}

exec::LoopOp FunctionBuilder::openLoop(Location loc, int64_t count,
                                       bool hasIndex) {
  if (count == 1 && !hasIndex)
    return {};
  auto loop = exec::LoopOp::create(
      builder, loc, kern::ExtentAttr::getConstant(builder.getContext(), count));
  builder.setInsertionPointToStart(&loop.getBody().emplaceBlock());
  ++level;
  return loop;
}

void FunctionBuilder::closeLoop(exec::LoopOp loop) {
  if (!loop)
    return;
  --level;
  builder.setInsertionPointAfter(loop);
}

/// Bytes of the rows of `type` that are in use, as an extent.
static kern::ExtentAttr getUsedBytes(RankedTensorType type) {
  MLIRContext *context = type.getContext();
  int64_t bytes = getTensorBytes(type);
  StringRef name = tfm::getDimName(type, 0);
  int64_t rows = type.getDimSize(0), rowBytes = bytes / std::max<int64_t>(rows, 1);
  if (name == tfm::tokensDim)
    return kern::ExtentAttr::get(context, "tokens", rowBytes, 1, 0, 0, bytes);
  if (name == tfm::labelsDim)
    return kern::ExtentAttr::get(context, "labels", rowBytes, 1, 0, 0, bytes);
  if (name == tfm::chunkDim)
    return kern::ExtentAttr::get(context, "labels", rowBytes, 1, -bytes, 0, bytes);
  return kern::ExtentAttr::getConstant(context, bytes);
}

Value FunctionBuilder::getWritable(Value value, Operation *writer) {
  Value slice = getOnly(value);
  Operation *maker = value.getDefiningOp();
  // What is stored beyond the function is updated where it is.
  if (isa_and_nonnull<kern::PortOp, fsdp::GradientOp, fsdp::FlatOp, fsdp::PartOp,
                      fsdp::WholeOp, fsdp::ScratchOp, fsdp::AllReduceOp>(maker))
    return slice;
  bool owned = isa_and_nonnull<kern::EmptyOp, kern::CallOp, kern::GemmOp,
                               kern::CopyOp, kern::FillOp>(maker);
  bool neededLater = llvm::any_of(value.getUsers(), [&](Operation *user) {
    return user != writer && writer->isBeforeInBlock(user);
  });
  if (owned && !neededLater)
    return slice;
  auto type = cast<RankedTensorType>(value.getType());
  Value copy = makeAlloc("copy", getBytes(slice));
  exec::CopyOp::create(builder, writer->getLoc(), slice, copy, getUsedBytes(type),
                       /*stream=*/0);
  return copy;
}

void FunctionBuilder::placeAt(Value value, Value place, Block *scope,
                              Operation *consumer) {
  Value slice = getOnly(value);
  auto alloc = slice.getDefiningOp<exec::AllocOp>();
  // What is read after the consumer must not share the consumer's place, which
  // is overwritten; nor may what the consumer is given a second time.
  bool neededLater = llvm::any_of(value.getUses(), [&](OpOperand &use) {
    return consumer->isBeforeInBlock(use.getOwner()) ||
           (use.getOwner() == consumer && use.getOperandNumber() != 0 &&
            !isa<tfm::ReturnOp>(consumer));
  });
  if (alloc && !neededLater && alloc->getBlock() == scope &&
      (int64_t)alloc.getBytes() == getBytes(place)) {
    // The place may have been made after the temporary's first use.
    if (auto maker = place.getDefiningOp<exec::SubsliceOp>();
        maker && maker->getBlock() == scope) {
      if (Operation *root = maker.getSource().getDefiningOp();
          root->getBlock() == scope)
        root->moveBefore(&scope->front());
      maker->moveBefore(alloc);
    }
    slice.replaceAllUsesWith(place);
    for (auto &entry : slices)
      for (Value &known : entry.second)
        if (known == slice)
          known = place;
    alloc.erase();
    return;
  }
  exec::CopyOp::create(builder, value.getLoc(), slice, place,
                       getUsedBytes(cast<RankedTensorType>(value.getType())),
                       /*stream=*/0);
}

void FunctionBuilder::shareSlices(Value argument, Value operand) {
  Slices copy = get(operand); // growing the map moves what `get` refers to
  slices[argument] = std::move(copy);
}

//===----------------------------------------------------------------------===//
// Straight-line code
//===----------------------------------------------------------------------===//

LogicalResult FunctionBuilder::build() {
  auto argumentNames = [&](unsigned index) {
    return source.getArgAttrOfType<StringAttr>(index, "tfm.port");
  };
  for (BlockArgument argument : source.getBody().getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    StringAttr name = argumentNames(argument.getArgNumber());
    if (!name)
      return source.emitError("[FSDPQ-0501] argument ")
             << argument.getArgNumber() << " of @" << source.getSymName()
             << " is no array of the host";
    kern::ExtentAttr bytes = getUsedBytes(type);
    int64_t width = type.getElementType().getIntOrFloatBitWidth() / 8;
    auto elements = kern::ExtentAttr::get(
        builder.getContext(), bytes.getScalar(), bytes.getMul() / width, 1, 0,
        bytes.getAdd() / width, bytes.getCap() / width);
    slices[argument] = {makeSlice(
        name, storage.getPort(name, type, /*input=*/true, elements), {0})};
  }
  return buildBody(source.getBody().front(), {});
}

LogicalResult FunctionBuilder::buildBody(Block &body, Layers layers) {
  for (Operation &op : body.without_terminator())
    if (failed(buildOp(op, layers)))
      return failure();
  return success();
}

/// `extent` without the number of the layer.
static kern::ExtentAttr bindLayer(kern::ExtentAttr extent,
                                  ArrayRef<int64_t> layers) {
  if (extent.getScalar() != kern::layerScalar)
    return extent;
  // A loop's iterations are layers at equal distances.
  int64_t first = 0, distance = 0;
  if (!layers.empty())
    first = layers.front() + 1;
  if (layers.size() > 1)
    distance = layers[1] - layers[0];
  return kern::ExtentAttr::get(
      extent.getContext(), "", 1, 1, distance * extent.getMul(),
      first * extent.getMul() + extent.getAdd(), extent.getCap());
}

void FunctionBuilder::buildCall(kern::CallOp op, Layers layers) {
  SmallVector<Value> reads, writes;
  for (Value input : op.getInputs())
    llvm::append_range(reads, get(input));
  for (auto [index, out] : llvm::enumerate(op.getOuts())) {
    Value slice = getWritable(out, op);
    slices[op.getResult(index)] = {slice};
    int64_t width = cast<RankedTensorType>(out.getType())
                        .getElementType()
                        .getIntOrFloatBitWidth() /
                    8;
    writes.push_back(makeOffset(
        slice, op.getOutOffsets() ? (*op.getOutOffsets())[index] * width : 0));
  }
  SmallVector<Attribute> extents;
  for (auto extent : op.getExtents().getAsRange<kern::ExtentAttr>())
    extents.push_back(bindLayer(extent, layers));
  exec::LaunchOp::create(builder, op.getLoc(), op.getCalleeAttr(), reads, writes,
                         op.getGrid(), builder.getArrayAttr(extents),
                         op.getScalars(),
                         op.getFlopsAttr(), builder.getI64IntegerAttr(0));
}

void FunctionBuilder::buildGemm(kern::GemmOp op) {
  auto elementOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType();
  };
  Type element = elementOf(op.getA()), result = elementOf(op.getOut());
  int64_t width = element.getIntOrFloatBitWidth() / 8;
  int64_t resultWidth = result.getIntOrFloatBitWidth() / 8;
  Value out = getWritable(op.getOut(), op);
  slices[op.getResult()] = {out};
  exec::GemmOp::create(
      builder, op.getLoc(), makeOffset(getOnly(op.getA()), op.getAOffset() * width),
      makeOffset(getOnly(op.getB()), op.getBOffset() * width),
      makeOffset(out, op.getCOffset() * resultWidth), TypeAttr::get(element),
      op.getTransAAttr(), op.getTransBAttr(), op.getAlphaAttr(), op.getBetaAttr(),
      op.getM(), op.getN(), op.getK(), op.getLdaAttr(), op.getLdbAttr(),
      op.getLdcAttr(), result == element ? TypeAttr() : TypeAttr::get(result),
      builder.getI64IntegerAttr(0));
}

/// What a temporary is called in tables of memory: the kernel that writes it,
/// without its shapes ("dequantize" of @dequantize_nf4_b64_n8192), or "product".
static std::string getFamily(kern::EmptyOp empty) {
  for (Operation *user : empty->getUsers())
    if (auto call = dyn_cast<kern::CallOp>(user)) {
      StringRef name = call.getCallee();
      size_t digit = name.find_first_of("0123456789.");
      if (digit != StringRef::npos)
        name = name.take_front(name.take_front(digit).rfind('_'));
      return name.str();
    }
  return "product";
}

LogicalResult FunctionBuilder::buildOp(Operation &op, Layers layers) {
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<fsdp::LocalOp, fsdp::ReleaseOp, fsdp::KeepOp>(
          [](auto) { return success(); })
      .Case([&](fsdp::AllGatherStartOp start) {
        return buildGather(start, layers), success();
      })
      .Case([&](fsdp::WaitOp wait) {
        auto start = wait.getPending().getDefiningOp<fsdp::AllGatherStartOp>();
        shareSlices(wait.getGathered(), start.getPending());
        makeWait(wait.getLoc(), gatherEvents.lookup(start), {});
        return success();
      })
      .Case([&](fsdp::KeptOp kept) { return buildKept(kept, layers), success(); })
      .Case([&](fsdp::ViewOp view) { return buildView(view, layers); })
      .Case([&](fsdp::GradientOp gradient) {
        return buildGradient(gradient, layers);
      })
      .Case([&](fsdp::GradientStartOp start) {
        return buildGradientStart(start, layers), success();
      })
      .Case([&](fsdp::ReduceScatterStartOp start) {
        return buildReduceScatter(start, layers), success();
      })
      .Case([&](fsdp::ReduceSumsOp sums) {
        return buildReduceSums(sums), success();
      })
      .Case([&](fsdp::ReduceReplicasOp replicas) {
        return buildReduceReplicas(replicas), success();
      })
      .Case([&](fsdp::AllReduceOp reduce) {
        return buildAllReduce(reduce), success();
      })
      .Case([&](fsdp::AllGatherOp gather) {
        return buildAllGather(gather), success();
      })
      .Case([&](fsdp::StoreOp store) { return buildStore(store), success(); })
      .Case([&](fsdp::WholeOp whole) {
        Storage::Place place = storage.getLoadBuffer();
        place.bytes = Storage::getBytes(storage.getUnit(whole.getUnit()));
        slices[whole.getResult()] = {
            makeSlice((whole.getUnit() + ".loading").str(), place, {0})};
        return success();
      })
      .Case([&](fsdp::PartOp part) { return buildPart(part), success(); })
      .Case([&](fsdp::ScratchOp scratch) {
        return buildScratch(scratch), success();
      })
      .Case([&](fsdp::FlatOp flat) {
        slices[flat.getResult()] = {
            makeSlice((flat.getUnit() + "." + flat.getBuffer()).str(),
                      storage.getFlat(flat.getUnit(), flat.getBuffer()), {0})};
        return success();
      })
      .Case([&](kern::EmptyOp empty) {
        slices[empty.getResult()] = {makeAlloc(
            getFamily(empty),
            getTensorBytes(cast<RankedTensorType>(empty.getResult().getType())))};
        return success();
      })
      .Case([&](kern::PortOp port) {
        auto type = cast<RankedTensorType>(port.getResult().getType());
        auto extent = kern::ExtentAttr::getConstant(builder.getContext(),
                                                    type.getNumElements());
        slices[port.getResult()] = {makeSlice(
            port.getPort(),
            storage.getPort(port.getPort(), type, /*input=*/false, extent), {0})};
        return success();
      })
      .Case([&](kern::FillOp fill) {
        Value out = getWritable(fill.getOut(), fill);
        slices[fill.getResult()] = {out};
        exec::FillOp::create(
            builder, fill.getLoc(), out,
            getUsedBytes(cast<RankedTensorType>(fill.getOut().getType())),
            /*stream=*/0);
        return success();
      })
      .Case([&](kern::CopyOp copy) {
        Value out = getWritable(copy.getOut(), copy);
        slices[copy.getResult()] = {out};
        exec::CopyOp::create(
            builder, copy.getLoc(), getOnly(copy.getInput()), out,
            getUsedBytes(cast<RankedTensorType>(copy.getOut().getType())),
            /*stream=*/0);
        return success();
      })
      .Case([&](kern::CallOp call) { return buildCall(call, layers), success(); })
      .Case([&](kern::GemmOp gemm) { return buildGemm(gemm), success(); })
      .Case([&](tfm::StackOp stack) { return buildStack(stack); })
      .Case([&](tfm::StackGradOp stack) { return buildStackGrad(stack); })
      .Case([&](tfm::ChunkLoopOp loop) { return buildChunkLoop(loop); })
      .Default([](Operation *other) {
        return other->emitError("[FSDPQ-0503] '")
               << other->getName()
               << "' has no instruction";
      });
}

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

/// The ordinal of each layer among those of its kind.
static SmallVector<int64_t> getKindOrdinals(ArrayRef<int32_t> layers,
                                            size_t kinds) {
  SmallVector<int64_t> next(kinds, 0), ordinals;
  for (int32_t kind : layers)
    ordinals.push_back(next[kind]++);
  return ordinals;
}

template <typename OpT>
static tfm::LayerOp getKind(OpT op, int64_t kind) {
  return SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(
      op, cast<SymbolRefAttr>(op.getKinds()[kind]));
}

LogicalResult FunctionBuilder::buildStack(tfm::StackOp op) {
  ArrayRef<int32_t> kindOf = op.getLayersAttr().asArrayRef();
  int64_t depth = kindOf.size();
  SmallVector<int64_t> ordinals = getKindOrdinals(kindOf, op.getKinds().size());
  auto carriedType = cast<RankedTensorType>(op.getX().getType());
  int64_t carriedBytes = getTensorBytes(carriedType);

  // Residuals of each kind. A layer that keeps its own input keeps the carried
  // value itself: then no two layers share a slot of it.
  Residuals residuals;
  bool keepsInputs = false;
  for (int64_t kind = 0; kind < (int64_t)op.getKinds().size(); ++kind) {
    tfm::LayerOp layer = getKind(op, kind);
    auto &isInput = residuals.isInput.emplace_back();
    for (Value value : layer.getTerminator()->getOperands().drop_front()) {
      isInput.push_back(value == layer.getBody().getArgument(0));
      keepsInputs |= isInput.back();
    }
  }
  Carry carry{Value(), carriedBytes, keepsInputs ? depth + 1 : 2};
  carry.storage = makeAlloc("carry", carry.slots * carriedBytes);
  residuals.carry = carry;
  for (int64_t kind = 0; kind < (int64_t)op.getKinds().size(); ++kind) {
    auto &kindStorage = residuals.storage.emplace_back();
    tfm::LayerOp layer = getKind(op, kind);
    for (auto [index, type] :
         llvm::enumerate(layer.getResultTypes().drop_front())) {
      int64_t bytes = getTensorBytes(cast<RankedTensorType>(type));
      int64_t layers = llvm::count(kindOf, kind);
      kindStorage.push_back(residuals.isInput[kind][index] || layers == 0
                                ? Value()
                                : makeAlloc("residual", layers * bytes));
    }
  }
  placeAt(op.getX(), makeSubslice(carry.storage, carriedBytes, carry.offset(0)),
          getBlock(), op);
  SmallVector<tfm::LayerOp> kindOps;
  for (int64_t kind = 0; kind < (int64_t)op.getKinds().size(); ++kind)
    kindOps.push_back(getKind(op, kind));
  prepareUnits(kindOps, kindOf, llvm::to_vector(llvm::seq<int64_t>(depth)));

  for (PeriodicRun run : findPeriodicRuns(kindOf)) {
    exec::LoopOp loop = openLoop(op.getLoc(), run.count);
    for (int64_t position = 0; position < run.period; ++position) {
      SmallVector<int64_t> layers, in, out;
      for (int64_t i = 0; i < run.count; ++i) {
        layers.push_back(run.start + i * run.period + position);
        in.push_back(carry.offset(layers.back()));
        out.push_back(carry.offset(layers.back() + 1));
      }
      int64_t kind = kindOf[layers.front()];
      tfm::LayerOp layer = getKind(op, kind);
      Block &body = layer.getBody().front();
      slices[body.getArgument(0)] = {
          makeSubslice(carry.storage, carriedBytes, in)};
      for (auto [argument, shared] :
           llvm::zip(body.getArguments().drop_front(), op.getShared()))
        shareSlices(argument, shared);
      if (failed(buildBody(body, layers)))
        return failure();
      ValueRange results = layer.getTerminator()->getOperands();
      for (auto [index, value] : llvm::enumerate(results.drop_front())) {
        if (residuals.isInput[kind][index])
          continue;
        int64_t bytes = getTensorBytes(cast<RankedTensorType>(value.getType()));
        SmallVector<int64_t> offsets;
        for (int64_t l : layers)
          offsets.push_back(ordinals[l] * bytes);
        placeAt(value, makeSubslice(residuals.storage[kind][index], bytes, offsets),
                getBlock(), layer.getTerminator());
      }
      placeAt(results.front(), makeSubslice(carry.storage, carriedBytes, out),
              getBlock(), layer.getTerminator());
    }
    closeLoop(loop);
  }
  finishUnits();
  slices[op.getY()] = {
      makeSubslice(carry.storage, carriedBytes, carry.offset(depth))};
  if (op.getSaved())
    saved[op.getSaved()] = std::move(residuals);
  return success();
}

LogicalResult FunctionBuilder::buildStackGrad(tfm::StackGradOp op) {
  ArrayRef<int32_t> kindOf = op.getLayersAttr().asArrayRef();
  int64_t depth = kindOf.size();
  SmallVector<int64_t> ordinals = getKindOrdinals(kindOf, op.getKinds().size());
  const Residuals &residuals = saved[op.getSaved()];
  int64_t bytes = getTensorBytes(cast<RankedTensorType>(op.getDy().getType()));
  Carry carry{makeAlloc("dcarry", 2 * bytes), bytes, 2};
  placeAt(op.getDy(), makeSubslice(carry.storage, bytes, carry.offset(0)),
          getBlock(), op);

  // From the highest layer down: step s handles layer depth - 1 - s.
  SmallVector<int32_t> reversed(llvm::reverse(kindOf));
  SmallVector<tfm::LayerOp> kindOps;
  SmallVector<int64_t> order(llvm::reverse(llvm::seq<int64_t>(depth)));
  for (int64_t kind = 0; kind < (int64_t)op.getKinds().size(); ++kind)
    kindOps.push_back(getKind(op, kind));
  prepareUnits(kindOps, kindOf, order);
  for (PeriodicRun run : findPeriodicRuns(reversed)) {
    exec::LoopOp loop = openLoop(op.getLoc(), run.count);
    for (int64_t position = 0; position < run.period; ++position) {
      SmallVector<int64_t> layers, in, out;
      for (int64_t i = 0; i < run.count; ++i) {
        int64_t step = run.start + i * run.period + position;
        layers.push_back(depth - 1 - step);
        in.push_back(carry.offset(step));
        out.push_back(carry.offset(step + 1));
      }
      int64_t kind = kindOf[layers.front()];
      tfm::LayerOp layer = getKind(op, kind);
      Block &body = layer.getBody().front();
      slices[body.getArgument(0)] = {makeSubslice(carry.storage, bytes, in)};
      auto residualArguments =
          body.getArguments().drop_front().drop_back(op.getShared().size());
      for (auto [index, argument] : llvm::enumerate(residualArguments)) {
        int64_t size = getTensorBytes(cast<RankedTensorType>(argument.getType()));
        SmallVector<int64_t> offsets;
        bool isInput = residuals.isInput[kind][index];
        for (int64_t l : layers)
          offsets.push_back(isInput ? residuals.carry.offset(l)
                                    : ordinals[l] * size);
        slices[argument] = {makeSubslice(isInput
                                             ? residuals.carry.storage
                                             : residuals.storage[kind][index],
                                         size, offsets)};
      }
      for (auto [argument, shared] :
           llvm::zip(body.getArguments().take_back(op.getShared().size()),
                     op.getShared()))
        shareSlices(argument, shared);
      if (failed(buildBody(body, layers)))
        return failure();
      placeAt(layer.getTerminator()->getOperand(0),
              makeSubslice(carry.storage, bytes, out), getBlock(),
              layer.getTerminator());
    }
    closeLoop(loop);
  }
  finishUnits();
  slices[op.getDx()] = {makeSubslice(carry.storage, bytes, carry.offset(depth))};
  return success();
}

//===----------------------------------------------------------------------===//
// Chunk loops
//===----------------------------------------------------------------------===//

LogicalResult FunctionBuilder::buildChunkLoop(tfm::ChunkLoopOp op) {
  auto function = SymbolTable::lookupNearestSymbolFrom<tfm::FuncOp>(
      op, op.getBodyAttr());
  int64_t rows = cast<RankedTensorType>(op.getSliced()[0].getType()).getDimSize(0);
  int64_t chunk = op.getChunk(), count = (rows + chunk - 1) / chunk;
  for (Value result : op.getResults())
    slices[result] = {makeAlloc(
        "rows", getTensorBytes(cast<RankedTensorType>(result.getType())))};
  // Iterations beyond the labelled rows find none left and do nothing, so the
  // count need not depend on the micro-batch. Offsets of the last chunk stay
  // within the buffers because capacities are multiples of the chunk or it is
  // cut to them.
  auto offsets = [&](int64_t bytes) {
    SmallVector<int64_t> result;
    for (int64_t i = 0; i < count; ++i)
      result.push_back(i * bytes);
    return result;
  };
  auto chunkBytes = [&](Value whole) {
    return getBytes(getOnly(whole)) / rows * chunk;
  };
  exec::LoopOp loop = openLoop(op.getLoc(), count, /*hasIndex=*/true);
  Block &body = function.getBody().front();
  for (auto [index, argument] : llvm::enumerate(body.getArguments())) {
    Value operand = op.getOperand(index);
    if (index >= op.getSliced().size())
      shareSlices(argument, operand);
    else
      slices[argument] = {makeSubslice(getOnly(operand), chunkBytes(operand),
                                       offsets(chunkBytes(operand)))};
  }
  if (failed(buildBody(body, {})))
    return failure();
  for (auto [result, value] :
       llvm::zip(op.getResults(), function.getTerminator()->getOperands()))
    placeAt(value,
            makeSubslice(getOnly(result), chunkBytes(result),
                         offsets(chunkBytes(result))),
            getBlock(), function.getTerminator());
  closeLoop(loop);
  return success();
}
