//===- Families.cpp - What a body was built from --------------------------===//

#include "compiler/Kernel/Bodies/Families.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;

static constexpr StringRef attributeName = "kern.family";

static constexpr StringRef attentionKinds[] = {
    "attention", "attention_delta", "attention_grad_q", "attention_grad_kv"};
static constexpr StringRef quantisedKinds[] = {"dequantize", "quantize",
                                               "quantize_scales"};
static constexpr StringRef ropeKind = "rope";
static constexpr StringRef crossEntropyKind = "fused_cross_entropy";

namespace {
/// Entries of the attribute in the making.
class Writer {
public:
  Writer(MLIRContext *context, StringRef kind) : builder(context) {
    add("kind", builder.getStringAttr(kind));
  }
  void add(StringRef name, Attribute value) {
    entries.push_back(builder.getNamedAttr(name, value));
  }
  void add(StringRef name, int64_t value) {
    add(name, builder.getI64IntegerAttr(value));
  }
  void add(StringRef name, Type type) { add(name, TypeAttr::get(type)); }
  void addIf(StringRef name, bool value) {
    if (value)
      add(name, builder.getUnitAttr());
  }

  Builder builder;
  SmallVector<NamedAttribute> entries;
};

/// Entries of the attribute; what is missing is noted.
class Reader {
public:
  explicit Reader(DictionaryAttr dictionary) : dictionary(dictionary) {}

  int64_t number(StringRef name) {
    auto value = dictionary.getAs<IntegerAttr>(name);
    isComplete &= value && value.getInt() >= 0;
    return isComplete ? value.getInt() : 0;
  }
  Type type(StringRef name) {
    auto value = dictionary.getAs<TypeAttr>(name);
    isComplete &= value && isa<FloatType>(value.getValue());
    return isComplete ? value.getValue() : Type();
  }
  double real(StringRef name) {
    auto value = dictionary.getAs<FloatAttr>(name);
    isComplete &= static_cast<bool>(value);
    return isComplete ? value.getValueAsDouble() : 0;
  }
  bool has(StringRef name) { return dictionary.contains(name); }

  bool isComplete = true;

private:
  DictionaryAttr dictionary;
};
} // namespace

static Writer write(MLIRContext *context, const AttentionFamily &family) {
  Writer writer(context, attentionKinds[family.kind]);
  const AttentionShape &shape = family.shape;
  writer.add("heads", shape.heads);
  writer.add("kv_heads", shape.kvHeads);
  writer.add("head_dim", shape.headDim);
  if (shape.window)
    writer.add("window", *shape.window);
  writer.add("scale", writer.builder.getF64FloatAttr(shape.scale));
  writer.addIf("packed", shape.packed);
  writer.add("element", shape.element);
  return writer;
}

static Writer write(MLIRContext *context, const QuantisedFamily &family) {
  Writer writer(context, quantisedKinds[family.kind]);
  writer.add("block", family.format.block);
  writer.add("nested", family.format.nested);
  writer.addIf("nf4", family.format.isNF4);
  writer.add("count", family.count);
  writer.add("element", family.element);
  return writer;
}

static Writer write(MLIRContext *context, const RopeFamily &family) {
  Writer writer(context, ropeKind);
  writer.add("columns", family.columns);
  writer.add("head_dim", family.headDim);
  writer.add("heads", family.heads);
  writer.addIf("inverse", family.inverse);
  writer.add("element", family.element);
  return writer;
}

static Writer write(MLIRContext *context, const CrossEntropyFamily &family) {
  Writer writer(context, crossEntropyKind);
  writer.add("vocabulary", family.vocabulary);
  writer.add("element", family.element);
  return writer;
}

kern::FuncOp kernels::tag(kern::FuncOp kernel, const Family &family) {
  MLIRContext *context = kernel.getContext();
  Writer writer = std::visit(
      [&](const auto &shape) { return write(context, shape); }, family);
  kernel->setAttr(attributeName, DictionaryAttr::get(context, writer.entries));
  return kernel;
}

/// The place of `kind` among `kinds`.
static std::optional<size_t> findKind(ArrayRef<StringRef> kinds, StringRef kind) {
  auto found = llvm::find(kinds, kind);
  if (found == kinds.end())
    return std::nullopt;
  return found - kinds.begin();
}

std::optional<Family> kernels::getFamily(kern::FuncOp kernel) {
  auto dictionary = kernel->getAttrOfType<DictionaryAttr>(attributeName);
  auto kind = dictionary ? dictionary.getAs<StringAttr>("kind") : StringAttr();
  if (!kind)
    return std::nullopt;
  Reader reader(dictionary);
  std::optional<Family> family;
  if (auto place = findKind(attentionKinds, kind)) {
    AttentionShape shape;
    shape.heads = reader.number("heads");
    shape.kvHeads = reader.number("kv_heads");
    shape.headDim = reader.number("head_dim");
    if (reader.has("window"))
      shape.window = reader.number("window");
    shape.scale = reader.real("scale");
    shape.packed = reader.has("packed");
    shape.element = reader.type("element");
    reader.isComplete &= shape.kvHeads > 0 && shape.heads > 0 &&
                         shape.headDim > 0 && shape.heads % shape.kvHeads == 0;
    family = AttentionFamily{AttentionFamily::Kind(*place), shape};
  } else if (auto place = findKind(quantisedKinds, kind)) {
    qt::BlockFormat format{reader.number("block"), reader.number("nested"),
                           reader.has("nf4")};
    family = QuantisedFamily{QuantisedFamily::Kind(*place), format,
                             reader.number("count"), reader.type("element")};
    reader.isComplete &= format.block > 1 && format.block % 2 == 0 &&
                         (format.nested > 0 || kind != "quantize_scales");
  } else if (kind == ropeKind) {
    RopeFamily shape{reader.number("columns"), reader.number("head_dim"),
                     reader.number("heads"), reader.has("inverse"),
                     reader.type("element")};
    reader.isComplete &= shape.headDim > 1 && shape.headDim % 2 == 0 &&
                         shape.heads * shape.headDim <= shape.columns;
    family = shape;
  } else if (kind == crossEntropyKind) {
    CrossEntropyFamily shape{reader.number("vocabulary"),
                             reader.type("element")};
    reader.isComplete &= shape.vocabulary > 0;
    family = shape;
  }
  return reader.isComplete ? family : std::nullopt;
}

static kern::FuncOp buildShape(OpBuilder &builder, Location loc,
                               const AttentionFamily &family) {
  switch (family.kind) {
  case AttentionFamily::Forward:
    return buildAttention(builder, loc, family.shape);
  case AttentionFamily::Delta:
    return buildAttentionDelta(builder, loc, family.shape);
  case AttentionFamily::GradQ:
    return buildAttentionGradQ(builder, loc, family.shape);
  case AttentionFamily::GradKV:
    return buildAttentionGradKV(builder, loc, family.shape);
  }
  llvm_unreachable("a kind without a builder");
}

static kern::FuncOp buildShape(OpBuilder &builder, Location loc,
                               const QuantisedFamily &family) {
  switch (family.kind) {
  case QuantisedFamily::Dequantize:
    return buildDequantize(builder, loc, family.format, family.count,
                           family.element);
  case QuantisedFamily::Quantize:
    return buildQuantize(builder, loc, family.format, family.count,
                         family.element.isF32() ? Type() : family.element);
  case QuantisedFamily::QuantizeScales:
    return buildQuantizeScales(builder, loc, family.format, family.count);
  }
  llvm_unreachable("a kind without a builder");
}

static kern::FuncOp buildShape(OpBuilder &builder, Location loc,
                               const RopeFamily &family) {
  return buildRope(builder, loc, family.columns, family.headDim, family.heads,
                   family.inverse, family.element);
}

static kern::FuncOp buildShape(OpBuilder &builder, Location loc,
                               const CrossEntropyFamily &family) {
  return buildFusedCrossEntropy(builder, loc, family.vocabulary,
                                family.element);
}

kern::FuncOp kernels::build(OpBuilder &builder, Location loc,
                            const Family &family) {
  return std::visit(
      [&](const auto &shape) { return buildShape(builder, loc, shape); },
      family);
}
