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
    : architecture(architecture), plan(plan) {
  for (auto unit : architecture.getBody().getOps<fsdp::UnitOp>()) {
    int64_t &end = unit.getTrainable() ? trainedBytes : baseBytes;
    UnitPlace place{unit, end};
    end += place.layers() * place.bytes();
    units.insert({unit.getSymNameAttr(), place});
    for (auto symbol : unit.getParams().getAsRange<FlatSymbolRefAttr>())
      unitNames[symbol.getValue()] = unit.getSymNameAttr();
  }
  architecture.walk([&](fsdp::FlatOp flat) {
    if (flat.getBuffer().starts_with("state"))
      stateBuffers = 2;
  });
}

const Storage::UnitPlace &Storage::unitOf(StringRef param) const {
  return units.find(unitNames.lookup(param))->second;
}

fsdp::PartAttr Storage::findPart(StringRef param, StringRef part) const {
  for (auto attribute : unitOf(param).op.getParts()->getAsRange<fsdp::PartAttr>())
    if (attribute.getParam().getValue() == param &&
        attribute.getName().getValue() == part)
      return attribute;
  return {};
}

Storage::Place Storage::getPart(StringRef param, StringRef part) const {
  const UnitPlace &unit = unitOf(param);
  fsdp::PartAttr place = findPart(param, part);
  return {unit.op.getTrainable() ? exec::adapterArena : exec::baseArena,
          unit.offset + place.getOffset(), unit.bytes(), place.getBytes()};
}

Storage::Place Storage::getGradient(StringRef param) const {
  Place place = getPart(param, "data");
  place.arena = exec::gradientArena;
  return place;
}

Storage::Place Storage::getFlat(StringRef name, StringRef buffer) const {
  StringAttr key = StringAttr::get(plan->getContext(), name);
  const UnitPlace &unit = units.find(key)->second;
  int64_t bytes = unit.layers() * unit.bytes();
  if (buffer == "data")
    return {exec::adapterArena, unit.offset, 0, bytes};
  if (buffer == "gradient")
    return {exec::gradientArena, unit.offset, 0, bytes};
  int64_t first = buffer == "state0" ? 0 : trainedBytes;
  return {exec::stateArena, first + unit.offset, 0, bytes};
}

Storage::Place Storage::getPort(StringRef name, RankedTensorType type, bool input,
                                kern::ExtentAttr extent) {
  int64_t bytes = getTensorBytes(type);
  if (name == exec::stagingArena) { // each parameter on its way in, one at a time
    stagingBytes = std::max(stagingBytes, bytes);
    return {exec::stagingArena, 0, 0, bytes};
  }
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

int64_t Storage::getOrdinal(StringRef param, int64_t layer) const {
  auto layers = unitOf(param).op.getLayersAttr().asArrayRef();
  return llvm::find(layers, layer) - layers.begin();
}

int64_t Storage::getLayerCount(StringRef param) const {
  auto layers = unitOf(param).op.getLayers();
  return layers ? layers->size() : 0;
}

void Storage::declareParam(OpBuilder &builder, tfm::ParamOp param) {
  StringRef name = param.getSymName();
  const UnitPlace &unit = unitOf(name);
  RankedTensorType type = param.getTensorType();
  SmallVector<qt::StoredPart> stored = {{"data", false, type.getNumElements()}};
  if (auto format = qt::getBlockFormat(type.getElementType()))
    stored = qt::getStoredParts(*format, type.getNumElements());
  SmallVector<Attribute> parts;
  for (const qt::StoredPart &part : stored)
    parts.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("name", builder.getStringAttr(part.name)),
         builder.getNamedAttr("type",
                              builder.getStringAttr(part.isByte ? "u8" : "f32")),
         builder.getNamedAttr(
             "offset", builder.getI64IntegerAttr(getPart(name, part.name).offset)),
         builder.getNamedAttr("elements",
                              builder.getI64IntegerAttr(part.count))}));
  exec::ParamOp::create(
      builder, param.getLoc(), param.getSymNameAttr(), TypeAttr::get(type),
      FlatSymbolRefAttr::get(builder.getContext(), getPart(name, stored[0].name).arena),
      builder.getI64IntegerAttr(unit.op.getLayers() ? unit.bytes() : 0),
      unit.op.getLayersAttr(), param.getHfAttr(), param.getGgufAttr(),
      cast_or_null<IntegerAttr>(param.getGgufRopeHeadsAttr()),
      param.getTrainableAttr(), param.getInitAttr(), builder.getArrayAttr(parts),
      param.getTrainable()
          ? builder.getI64IntegerAttr(getGradient(name).offset)
          : IntegerAttr(),
      param.getInit() ? FlatSymbolRefAttr()
                      : FlatSymbolRefAttr::get(builder.getContext(),
                                               ("load." + name).str()));
}

void Storage::declare() {
  OpBuilder builder = OpBuilder::atBlockBegin(&plan.getBody().front());
  auto arena = [&](StringRef name, std::optional<int64_t> bytes) {
    exec::ArenaOp::create(builder, plan.getLoc(), builder.getStringAttr(name),
                          bytes ? builder.getI64IntegerAttr(*bytes)
                                : IntegerAttr());
  };
  // Arenas of nothing are left out, except the one that is planned later.
  for (auto [name, bytes] :
       {std::pair(exec::baseArena, baseBytes),
        {exec::adapterArena, trainedBytes},
        {exec::gradientArena, trainedBytes},
        {exec::stateArena, trainedBytes * stateBuffers},
        {exec::stepArena, stepBytes},
        {exec::stagingArena, stagingBytes}})
    if (bytes > 0)
      arena(name, bytes);
  arena(exec::activationArena, std::nullopt);
  for (auto param : architecture.getBody().getOps<tfm::ParamOp>())
    if (unitNames.contains(param.getSymName()))
      declareParam(builder, param);
}
