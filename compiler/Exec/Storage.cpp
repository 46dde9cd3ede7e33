#include "compiler/Exec/Storage.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fsdpq;

int64_t fsdpq::getTensorBytes(RankedTensorType type) {
  return llvm::divideCeil(type.getNumElements() *
                              type.getElementType().getIntOrFloatBitWidth(),
                          8);
}

Storage::Storage(tfm::ArchitectureOp architecture, exec::PlanOp plan)
    : architecture(architecture), plan(plan),
      mesh(fsdp::MeshOp::of(architecture)) {
  if (mesh)
    shards = mesh.getNumShards();
  architecture.walk([&](fsdp::ReduceSumsOp op) { summed.insert(op.getUnit()); });
  for (auto unit : architecture.getBody().getOps<fsdp::UnitOp>()) {
    int64_t &end = unit.getTrainable() ? trainedBytes : baseBytes;
    units.insert({unit.getSymName(), {unit, end, sumBytes}});
    int64_t bytes = countLayers(unit) * getBytes(unit);
    end += bytes / shards;
    if (hasGradientSum(unit.getSymName()))
      sumBytes += bytes;
    for (auto symbol : unit.getParams().getAsRange<FlatSymbolRefAttr>())
      unitNames[symbol.getValue()] = unit.getSymName();
  }
  architecture.walk([&](fsdp::FlatOp flat) {
    if (flat.getBuffer().starts_with("state"))
      stateBuffers = 2;
  });
  // What load functions use lies one after the other: the piece that the host
  // stages, the buffer of the unit, scratch.
  for (auto function : architecture.getBody().getOps<tfm::FuncOp>())
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
      if (auto port = function.getArgAttrOfType<StringAttr>(index, "tfm.port");
          port && port.getValue() == exec::stagingArena)
        stagedBytes = std::max(
            stagedBytes,
            (int64_t)llvm::alignTo(getTensorBytes(cast<RankedTensorType>(type)),
                                   exec::alignment));
  architecture.walk([&](fsdp::WholeOp whole) {
    loadBytes = std::max(loadBytes, getBytes(getUnit(whole.getUnit())));
  });
}

fsdp::UnitOp Storage::getUnit(StringRef name) const {
  auto it = units.find(name);
  return it == units.end() ? fsdp::UnitOp() : it->second.op;
}

fsdp::UnitOp Storage::getUnitOf(StringRef param) const {
  return getUnit(unitNames.lookup(param));
}

fsdp::PartAttr Storage::findPart(StringRef param, StringRef part) const {
  for (auto attribute : getUnitOf(param).getParts()->getAsRange<fsdp::PartAttr>())
    if (attribute.getParam().getValue() == param &&
        attribute.getName().getValue() == part)
      return attribute;
  return {};
}

int64_t Storage::getOrdinal(fsdp::UnitOp unit, int64_t layer) {
  if (!unit.getLayers())
    return 0;
  auto layers = unit.getLayersAttr().asArrayRef();
  return llvm::find(layers, layer) - layers.begin();
}

Storage::Place Storage::getRange(StringRef name) const {
  const UnitPlace &place = placeOf(name);
  int64_t bytes = getBytes(place.op) / shards;
  return {place.op.getTrainable() ? exec::adapterArena : exec::baseArena,
          place.offset, bytes, bytes};
}

Storage::Place Storage::getGradientRange(StringRef name) const {
  Place place = getRange(name);
  place.arena = exec::gradientArena;
  return place;
}

Storage::Place Storage::getGradientSum(StringRef name) const {
  const UnitPlace &place = placeOf(name);
  int64_t bytes = getBytes(place.op);
  return {exec::sumArena, place.sumOffset, bytes, bytes};
}

Storage::Place Storage::getFlat(StringRef name, StringRef buffer) const {
  Place place = getRange(name);
  place.bytes *= countLayers(placeOf(name).op);
  place.stride = 0;
  if (buffer == "gradient")
    place.arena = exec::gradientArena;
  else if (buffer != "data")
    place = {exec::stateArena,
             place.offset + (buffer == "state0" ? 0 : trainedBytes), 0,
             place.bytes};
  return place;
}

Storage::Place Storage::getPort(StringRef name, RankedTensorType type, bool input,
                                kern::ExtentAttr extent) {
  int64_t bytes = getTensorBytes(type);
  if (name == exec::stagingArena) // each parameter on its way in, one at a time
    return {exec::stagingArena, 0, 0, bytes};
  auto [place, isNew] = ports.try_emplace(name);
  if (!isNew)
    return place->second;
  place->second = {exec::stepArena, stepBytes, 0, bytes};
  OpBuilder builder = OpBuilder::atBlockEnd(&plan.getBody().front());
  exec::PortOp::create(builder, plan.getLoc(), builder.getStringAttr(name),
                       input ? builder.getUnitAttr() : UnitAttr(),
                       TypeAttr::get(type.getElementType()),
                       FlatSymbolRefAttr::get(builder.getContext(),
                                              exec::stepArena),
                       builder.getI64IntegerAttr(stepBytes), extent);
  stepBytes = llvm::alignTo(stepBytes + bytes, exec::alignment);
  return place->second;
}

Storage::Place Storage::getLoadBuffer() const {
  return {exec::stagingArena, stagedBytes, 0, loadBytes};
}

/// Values of one name have one place, large enough for the largest parameter.
Storage::Place Storage::getScratch(StringRef name, int64_t bytes) {
  auto [place, isNew] = scratch.try_emplace(name);
  if (isNew) {
    int64_t largest = 0;
    architecture.walk([&](fsdp::ScratchOp op) {
      if (op.getName() == name)
        largest = std::max(
            largest, (int64_t)op.getPieces() *
                         getTensorBytes(
                             cast<RankedTensorType>(op.getResult().getType())));
    });
    place->second = {exec::stagingArena, stagedBytes + loadBytes + scratchBytes,
                     0, largest};
    scratchBytes += llvm::alignTo(largest, exec::alignment);
  }
  Place part = place->second;
  part.stride = part.bytes = bytes;
  return part;
}

FlatSymbolRefAttr Storage::findFunction(const Twine &name) {
  std::string text = name.str();
  return architecture.lookupSymbol(text)
             ? FlatSymbolRefAttr::get(architecture.getContext(), text)
             : FlatSymbolRefAttr();
}

void Storage::declareUnit(OpBuilder &builder, const UnitPlace &place) {
  StringRef name = place.op.getSymName();
  exec::UnitOp::create(
      builder, place.op.getLoc(), place.op.getSymNameAttr(),
      FlatSymbolRefAttr::get(builder.getContext(), getRange(name).arena),
      builder.getI64IntegerAttr(place.offset), place.op.getBytesAttr(),
      place.op.getLayersAttr(),
      place.op.getTrainable() ? builder.getI64IntegerAttr(place.offset)
                              : IntegerAttr(),
      findFunction("load.begin." + name), findFunction("load.store." + name));
}

void Storage::declareParam(OpBuilder &builder, tfm::ParamOp param) {
  StringRef name = param.getSymName();
  RankedTensorType type = param.getTensorType();
  SmallVector<qt::StoredPart> stored = {{"data", false, type.getNumElements()}};
  if (auto format = qt::getBlockFormat(type.getElementType()))
    stored = qt::getStoredParts(*format, type.getNumElements());
  // Plain values are stored in the parameter's own type.
  StringRef plain = type.getElementType().isBF16() ? "bf16" : "f32";
  SmallVector<Attribute> parts;
  for (const qt::StoredPart &part : stored)
    parts.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("name", builder.getStringAttr(part.name)),
         builder.getNamedAttr("type",
                              builder.getStringAttr(
                                          part.isByte           ? "u8"
                                          : part.name == "data" ? plain
                                                                : "f32")),
         builder.getNamedAttr("offset",
                              builder.getI64IntegerAttr(
                                  findPart(name, part.name).getOffset())),
         builder.getNamedAttr("elements",
                              builder.getI64IntegerAttr(part.count))}));
  DictionaryAttr loader;
  int64_t pieces = 0;
  if (auto piece = architecture.lookupSymbol<tfm::FuncOp>(("load." + name).str())) {
    NamedAttrList functions;
    functions.set("piece", findFunction("load." + name));
    for (StringRef step : {"mean", "scales", "offset"})
      if (FlatSymbolRefAttr function = findFunction("load." + step + "." + name))
        functions.set(step, function);
    loader = functions.getDictionary(builder.getContext());
    pieces = type.getNumElements() /
             cast<RankedTensorType>(piece.getArgumentTypes().front())
                 .getNumElements();
  }
  exec::ParamOp::create(
      builder, param.getLoc(), param.getSymNameAttr(), TypeAttr::get(type),
      FlatSymbolRefAttr::get(builder.getContext(), unitNames.lookup(name)),
      param.getHfAttr(), param.getGgufAttr(),
      cast_or_null<IntegerAttr>(param.getGgufRopeHeadsAttr()),
      param.getTrainableAttr(), param.getInitAttr(), builder.getArrayAttr(parts),
      builder.getI64IntegerAttr(pieces), loader);
}

void Storage::declare() {
  OpBuilder builder = OpBuilder::atBlockBegin(&plan.getBody().front());
  if (mesh)
    builder.clone(*mesh);
  auto arena = [&](StringRef name, std::optional<int64_t> bytes,
                   FlatSymbolRefAttr shares = {}) {
    exec::ArenaOp::create(builder, plan.getLoc(), builder.getStringAttr(name),
                          bytes ? builder.getI64IntegerAttr(*bytes)
                                : IntegerAttr(),
                          shares, DictionaryAttr());
  };
  // Arenas of nothing are left out, except the one that is planned later.
  for (auto [name, bytes] :
       {std::pair(exec::baseArena, baseBytes),
        {exec::adapterArena, trainedBytes},
        {exec::gradientArena, trainedBytes},
        {exec::sumArena, sumBytes},
        {exec::stateArena, trainedBytes * stateBuffers},
        {exec::stepArena, stepBytes}})
    if (bytes > 0)
      arena(name, bytes);
  arena(exec::activationArena, std::nullopt);
  // Loading is over before activations are needed.
  if (int64_t bytes = stagedBytes + loadBytes + scratchBytes)
    arena(exec::stagingArena, bytes,
          FlatSymbolRefAttr::get(builder.getContext(), exec::activationArena));
  for (auto &[name, place] : units)
    declareUnit(builder, place);
  for (auto param : architecture.getBody().getOps<tfm::ParamOp>())
    if (unitNames.contains(param.getSymName()))
      declareParam(builder, param);
}
