//===- TfmCompute.cpp - Types and verifiers of the computing ops ----------===//

#include "dialects/QT/QT.h"
#include "dialects/Support/Elements.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpImplementation.h"

#include <cmath>

using namespace mlir;
using namespace fsdpq::tfm;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {
/// A dimension: its size (or dynamic) and its name.
struct Dim {
  int64_t size;
  StringRef name;
};
} // namespace

static Dim dimOf(Value value, int64_t dim) {
  return {typeOf(value).getDimSize(dim), getDimName(typeOf(value), dim)};
}

static RankedTensorType makeType(ArrayRef<Dim> dims, Type elementType) {
  SmallVector<int64_t> shape;
  SmallVector<StringRef> names;
  for (Dim dim : dims) {
    shape.push_back(dim.size);
    names.push_back(dim.name);
  }
  return getNamedType(elementType.getContext(), shape, names, elementType);
}

/// Rank errors must be caught before dimOf reads a dimension.
static LogicalResult checkRank(std::optional<Location> location, Value value,
                               int64_t rank, StringRef what) {
  if (typeOf(value).getRank() == rank)
    return success();
  return emitOptionalError(location, what, " must have rank ", rank, ", got ",
                           value.getType());
}

/// `a` and `b` must be equal where both are known.
static LogicalResult checkSame(Operation *op, Dim a, Dim b, StringRef what) {
  bool same = ShapedType::isDynamic(a.size) || ShapedType::isDynamic(b.size)
                  ? a.name == b.name
                  : a.size == b.size;
  if (same)
    return success();
  auto print = [](Dim dim) {
    return ShapedType::isDynamic(dim.size) ? dim.name.str()
                                           : std::to_string(dim.size);
  };
  return op->emitOpError() << what << " differ: " << print(a) << " and "
                           << print(b);
}

/// An attribute while types are inferred. The parser infers before it has moved
/// attributes into properties, so an adaptor alone would not see them.
static Attribute attributeOf(Attribute property, DictionaryAttr attributes,
                             StringRef name) {
  return property ? property : attributes ? attributes.get(name) : Attribute();
}

/// Heads wider than this are no model's.
static constexpr int64_t maxHeadDim = 4096;

/// A number that is already bound must be positive and finite.
static LogicalResult checkPositive(Operation *op, Attribute attribute,
                                   StringRef name) {
  if (!isa_and_nonnull<IntegerAttr, FloatAttr>(attribute))
    return success();
  double value = getBoundFloat(attribute);
  if (value > 0 && std::isfinite(value))
    return success();
  return op->emitOpError("[FSDPQ-0111] has ")
         << name << " = " << attribute << "; it must be positive";
}

static Type elementOf(Value value) { return typeOf(value).getElementType(); }

/// Statistics and gradients of parameters have the type in which they are summed.
static Type sumTypeOf(Value value) {
  return fsdpq::getComputeType(elementOf(value));
}

static RankedTensorType withElement(Value value, Type element) {
  return typeOf(value).clone(element);
}

/// Both operands of a product have one element type; a quantised one becomes the
/// other's.
static LogicalResult checkProduct(Operation *op, Value a, Value b) {
  if (elementOf(a) == elementOf(b) || fsdpq::qt::isQuantized(elementOf(a)) ||
      fsdpq::qt::isQuantized(elementOf(b)))
    return success();
  return op->emitOpError("multiplies elements of ")
         << elementOf(a) << " and " << elementOf(b);
}

#define INFER(OP)                                                              \
  LogicalResult OP::inferReturnTypes(                                          \
      MLIRContext *context, std::optional<Location> location,                  \
      OP::Adaptor adaptor, SmallVectorImpl<Type> &types)

//===----------------------------------------------------------------------===//
// Embedding, products
//===----------------------------------------------------------------------===//

INFER(EmbeddingOp) {
  if (failed(checkRank(location, adaptor.getIds(), 1, "ids")) ||
      failed(checkRank(location, adaptor.getTable(), 2, "the table")))
    return failure();
  types.push_back(
      makeType({dimOf(adaptor.getIds(), 0), dimOf(adaptor.getTable(), 1)},
               elementOf(adaptor.getTable())));
  return success();
}

LogicalResult EmbeddingOp::verify() {
  if (!elementOf(getIds()).isInteger(32))
    return emitOpError("needs i32 ids, got ") << getIds().getType();
  return success();
}

INFER(LinearOp) {
  if (failed(checkRank(location, adaptor.getX(), 2, "x")) ||
      failed(checkRank(location, adaptor.getW(), 2, "the weight")))
    return failure();
  types.push_back(makeType({dimOf(adaptor.getX(), 0), dimOf(adaptor.getW(), 0)},
                           elementOf(adaptor.getX())));
  return success();
}

LogicalResult LinearOp::verify() {
  if (failed(checkProduct(*this, getX(), getW())))
    return failure();
  return checkSame(*this, dimOf(getX(), 1), dimOf(getW(), 1),
                   "columns of x and the weight");
}

INFER(DropoutOp) {
  if (failed(checkRank(location, adaptor.getX(), 2, "x")))
    return failure();
  types.push_back(adaptor.getX().getType());
  return success();
}

INFER(LoraLinearOp) {
  for (auto [value, what] : {std::pair(adaptor.getX(), "x"),
                             {adaptor.getW(), "the weight"},
                             {adaptor.getA(), "a"},
                             {adaptor.getB(), "b"}})
    if (failed(checkRank(location, value, 2, what)))
      return failure();
  Dim tokens = dimOf(adaptor.getX(), 0);
  Type element = elementOf(adaptor.getX());
  types.push_back(makeType({tokens, dimOf(adaptor.getW(), 0)}, element));
  types.push_back(makeType({tokens, dimOf(adaptor.getA(), 0)}, element));
  return success();
}

LogicalResult LoraLinearOp::verify() {
  if (getParts().size() != getAdapted().size())
    return emitOpError("has ") << getParts().size() << " parts and "
                               << getAdapted().size() << " adapted flags";
  int64_t outputs = 0, adaptedOutputs = 0, adapters = 0;
  for (auto [size, adapted] : llvm::zip(getParts(), getAdapted())) {
    outputs += size;
    adaptedOutputs += adapted ? size : 0;
    adapters += adapted;
  }
  if (adapters == 0)
    return emitOpError("adapts nothing");
  for (Value factor : {getW(), getA(), getB()})
    if (failed(checkProduct(*this, getX(), factor)))
      return failure();
  if (!typeOf(getW()).hasStaticShape() || !typeOf(getB()).hasStaticShape())
    return success();
  if (outputs != dimOf(getW(), 0).size)
    return emitOpError("has parts of ")
           << outputs << " outputs and a weight of " << dimOf(getW(), 0).size;
  if (adaptedOutputs != dimOf(getB(), 0).size)
    return emitOpError("adapts ") << adaptedOutputs << " outputs and has b of "
                                  << dimOf(getB(), 0).size << " rows";
  int64_t rank = dimOf(getB(), 1).size;
  if (adapters * rank != dimOf(getA(), 0).size)
    return emitOpError("has ")
           << adapters << " adapters of rank " << rank << " and a of "
           << dimOf(getA(), 0).size << " rows";
  if (failed(checkSame(*this, dimOf(getX(), 1), dimOf(getA(), 1),
                       "columns of x and a")))
    return failure();
  return checkSame(*this, dimOf(getX(), 1), dimOf(getW(), 1),
                   "columns of x and the weight");
}

INFER(LoraLinearGradOp) {
  Type sum = sumTypeOf(adaptor.getX());
  types.append({adaptor.getX().getType(), withElement(adaptor.getA(), sum),
                withElement(adaptor.getB(), sum)});
  return success();
}

INFER(MatmulOp) {
  if (failed(checkRank(location, adaptor.getA(), 2, "a")) ||
      failed(checkRank(location, adaptor.getB(), 2, "b")))
    return failure();
  bool transA = attributeOf(adaptor.getTransAAttr(), adaptor.getAttributes(), "trans_a") != nullptr;
  bool transB = attributeOf(adaptor.getTransBAttr(), adaptor.getAttributes(), "trans_b") != nullptr;
  bool isSum = attributeOf(adaptor.getSumAttr(), adaptor.getAttributes(), "sum") != nullptr;
  types.push_back(makeType({dimOf(adaptor.getA(), transA ? 1 : 0),
                            dimOf(adaptor.getB(), transB ? 0 : 1)},
                           isSum ? sumTypeOf(adaptor.getA())
                                 : elementOf(adaptor.getA())));
  return success();
}

LogicalResult MatmulOp::verify() {
  if (failed(checkProduct(*this, getA(), getB())))
    return failure();
  return checkSame(*this, dimOf(getA(), getTransA() ? 0 : 1),
                   dimOf(getB(), getTransB() ? 1 : 0), "the contracted sizes");
}

//===----------------------------------------------------------------------===//
// Normalisation
//===----------------------------------------------------------------------===//

/// Of one statistic a row.
static RankedTensorType rowType(Value x) {
  return makeType({dimOf(x, 0)}, sumTypeOf(x));
}

INFER(RmsNormOp) {
  if (failed(checkRank(location, adaptor.getX(), 2, "x")) ||
      failed(checkRank(location, adaptor.getW(), 1, "the weight")))
    return failure();
  types.append({adaptor.getX().getType(), rowType(adaptor.getX())});
  return success();
}

LogicalResult RmsNormOp::verify() {
  if (failed(checkPositive(*this, getEps(), "eps")))
    return failure();
  return checkSame(*this, dimOf(getX(), 1), dimOf(getW(), 0),
                   "columns of x and the weight");
}

INFER(AddRmsNormOp) {
  if (failed(checkRank(location, adaptor.getX(), 2, "x")) ||
      failed(checkRank(location, adaptor.getW(), 1, "the weight")))
    return failure();
  types.append({adaptor.getX().getType(), adaptor.getX().getType(),
                rowType(adaptor.getX())});
  return success();
}

LogicalResult AddRmsNormOp::verify() {
  if (failed(checkPositive(*this, getEps(), "eps")))
    return failure();
  if (getX().getType() != getResidual().getType())
    return emitOpError("adds ")
           << getX().getType() << " and " << getResidual().getType();
  return checkSame(*this, dimOf(getX(), 1), dimOf(getW(), 0),
                   "columns of x and the weight");
}

INFER(RmsNormGradOp) {
  types.push_back(adaptor.getX().getType());
  return success();
}

INFER(RmsNormWeightGradOp) {
  if (failed(checkRank(location, adaptor.getX(), 2, "x")))
    return failure();
  types.push_back(
      makeType({dimOf(adaptor.getX(), 1)}, sumTypeOf(adaptor.getX())));
  return success();
}

//===----------------------------------------------------------------------===//
// Rotary embedding, attention
//===----------------------------------------------------------------------===//

LogicalResult RopeTableOp::verify() {
  RankedTensorType table = typeOf(getTable());
  if (table.getRank() != 2 || typeOf(getPositions()).getRank() != 1)
    return emitOpError("makes a [T, E] table from T positions, got ")
           << table << " from " << getPositions().getType();
  if (table.hasStaticShape() && table.getDimSize(1) % 2 != 0)
    return emitOpError("needs an even head size, got ") << table.getDimSize(1);
  if (table.hasStaticShape() && table.getDimSize(1) > maxHeadDim)
    return emitOpError("[FSDPQ-0110] has heads of ")
           << table.getDimSize(1) << " columns; " << maxHeadDim << " is the most";
  if (failed(checkPositive(*this, getTheta(), "theta")))
    return failure();
  Attribute given = getScalingAttr();
  if (!given || isa<ConfigAttr>(given))
    return success();
  auto scaling = dyn_cast<DictionaryAttr>(given);
  if (!scaling)
    return emitOpError("[FSDPQ-0110] has rope scaling ")
           << given << ", which is no dictionary";
  Attribute type = scaling.get("rope_type");
  if (!type)
    type = scaling.get("type");
  if (!type) {
    if (scaling.get("factor"))
      return emitOpError("[FSDPQ-0110] has a rope scaling factor without a "
                         "rope_type: ")
             << scaling;
    return success();
  }
  auto name = dyn_cast<StringAttr>(type);
  if (!name || !llvm::is_contained({"default", "none", "linear", "llama3"},
                                   name.getValue()))
    return emitOpError("[FSDPQ-0110] has rope_type ")
           << type << "; known are default, linear and llama3";
  return success();
}

INFER(RopeOp) {
  types.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult RopeOp::verify() {
  auto heads = dyn_cast<IntegerAttr>(getHeads());
  RankedTensorType x = typeOf(getX()), table = typeOf(getTable());
  if (x.getRank() != 2 || table.getRank() != 2)
    return emitOpError("needs matrices, got ") << x << " and " << table;
  if (heads && x.hasStaticShape() && table.hasStaticShape() &&
      heads.getInt() * table.getDimSize(1) > x.getDimSize(1))
    return emitOpError("rotates ")
           << heads.getInt() << " heads of " << table.getDimSize(1)
           << " columns in a row of " << x.getDimSize(1);
  return success();
}

int64_t fsdpq::tfm::getHeadDim(AttentionOp op) {
  int64_t heads = getBoundInt(op.getHeads());
  int64_t columns = typeOf(op.getQkv().front()).getDimSize(1);
  if (op.getQkv().size() == 1)
    return columns / (heads + 2 * getBoundInt(op.getKvHeads()));
  return columns / heads;
}

int64_t fsdpq::tfm::getHeadDim(AttentionGradOp op) {
  return typeOf(op.getDo_()).getDimSize(1) / static_cast<int64_t>(op.getHeads());
}

INFER(AttentionOp) {
  ValueRange qkv = adaptor.getQkv();
  if (qkv.size() != 1 && qkv.size() != 3)
    return emitOptionalError(location, "takes q, k, v or one joined tensor, got ",
                             qkv.size(), " operands");
  for (Value value : qkv)
    if (failed(checkRank(location, value, 2, "q, k and v")))
      return failure();
  Value q = qkv.front();
  Attribute headsAttr = attributeOf(adaptor.getHeadsAttr(), adaptor.getAttributes(), "heads");
  auto heads = dyn_cast_or_null<IntegerAttr>(headsAttr);
  auto kvHeads = dyn_cast_or_null<IntegerAttr>(attributeOf(adaptor.getKvHeadsAttr(), adaptor.getAttributes(), "kv_heads"));
  Dim tokens = dimOf(q, 0), columns = dimOf(q, 1);
  Dim lseColumns{ShapedType::kDynamic, ""};
  if (heads) {
    lseColumns = {heads.getInt(), ""};
  } else {
    auto config = dyn_cast_or_null<ConfigAttr>(headsAttr);
    if (!config)
      return emitOptionalError(location, "heads must be an integer");
    lseColumns.name = config.getName().getValue();
  }
  if (qkv.size() == 1) {
    if (!heads || !kvHeads || ShapedType::isDynamic(columns.size))
      return emitOptionalError(
          location, "a joined qkv needs sizes that are already bound");
    int64_t all = heads.getInt() + 2 * kvHeads.getInt();
    if (all <= 0 || columns.size % all != 0)
      return emitOptionalError(location, columns.size, " columns do not hold ",
                               all, " heads");
    columns = {columns.size / all * heads.getInt(), ""};
  }
  types.push_back(makeType({tokens, columns}, elementOf(q)));
  types.push_back(makeType({tokens, lseColumns}, sumTypeOf(q)));
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(checkPositive(*this, getWindowAttr(), "window")))
    return failure();
  auto heads = dyn_cast<IntegerAttr>(getHeads());
  auto kvHeads = dyn_cast<IntegerAttr>(getKvHeads());
  if (!heads || !kvHeads)
    return success();
  if (heads.getInt() <= 0 || kvHeads.getInt() <= 0 ||
      heads.getInt() % kvHeads.getInt() != 0)
    return emitOpError("shares ")
           << kvHeads.getInt() << " key heads among " << heads.getInt()
           << " query heads";
  if (getQkv().size() == 1)
    return success();
  Dim q = dimOf(getQkv()[0], 1), k = dimOf(getQkv()[1], 1);
  if (ShapedType::isDynamic(q.size) || ShapedType::isDynamic(k.size))
    return success();
  if (q.size % heads.getInt() != 0 ||
      k.size != q.size / heads.getInt() * kvHeads.getInt())
    return emitOpError("has q of ")
           << q.size << " columns in " << heads.getInt() << " heads and k of "
           << k.size << " in " << kvHeads.getInt();
  return checkSame(*this, k, dimOf(getQkv()[2], 1), "columns of k and v");
}

INFER(AttentionGradOp) {
  llvm::append_range(types, adaptor.getQkv().getTypes());
  return success();
}

//===----------------------------------------------------------------------===//
// Element-wise
//===----------------------------------------------------------------------===//

INFER(SiluOp) {
  types.push_back(adaptor.getX().getType());
  return success();
}

INFER(SiluGradOp) {
  types.push_back(adaptor.getX().getType());
  return success();
}

INFER(GatedSiluOp) {
  ValueRange operands = adaptor.getGateUp();
  if (operands.size() != 1 && operands.size() != 2)
    return emitOptionalError(location,
                             "takes gate and up or one joined tensor, got ",
                             operands.size(), " operands");
  if (operands.size() == 2) {
    types.push_back(operands[0].getType());
    return success();
  }
  if (failed(checkRank(location, operands[0], 2, "gate and up")))
    return failure();
  Dim columns = dimOf(operands[0], 1);
  if (ShapedType::isDynamic(columns.size) || columns.size % 2 != 0)
    return emitOptionalError(location,
                             "a joined gate_up needs an even, bound size");
  types.push_back(makeType({dimOf(operands[0], 0), {columns.size / 2, ""}},
                           elementOf(operands[0])));
  return success();
}

LogicalResult GatedSiluOp::verify() {
  if (getGateUp().size() == 2 &&
      getGateUp()[0].getType() != getGateUp()[1].getType())
    return emitOpError("multiplies ")
           << getGateUp()[0].getType() << " and " << getGateUp()[1].getType();
  return success();
}

INFER(GatedSiluGradOp) {
  llvm::append_range(types, adaptor.getGateUp().getTypes());
  return success();
}

INFER(AddOp) {
  types.push_back(adaptor.getA().getType());
  return success();
}

LogicalResult AddOp::verify() {
  if (getA().getType() != getB().getType())
    return emitOpError("adds ") << getA().getType() << " and " << getB().getType();
  return success();
}

INFER(MulOp) {
  types.push_back(adaptor.getA().getType());
  return success();
}

LogicalResult MulOp::verify() {
  if (getA().getType() != getB().getType())
    return emitOpError("multiplies ")
           << getA().getType() << " and " << getB().getType();
  return success();
}

INFER(ScaleOp) {
  types.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult CastOp::verify() {
  RankedTensorType from = typeOf(getX()), to = typeOf(getY());
  if (from.clone(to.getElementType()) != to)
    return emitOpError("changes more than the element type: ")
           << from << " to " << to;
  for (Type element : {from.getElementType(), to.getElementType()})
    if (!isa<FloatType>(element))
      return emitOpError("casts between floating point types, not ") << element;
  return success();
}

//===----------------------------------------------------------------------===//
// Rows, loss
//===----------------------------------------------------------------------===//

INFER(GatherRowsOp) {
  if (failed(checkRank(location, adaptor.getX(), 2, "x")) ||
      failed(checkRank(location, adaptor.getRows(), 1, "rows")))
    return failure();
  types.push_back(
      makeType({dimOf(adaptor.getRows(), 0), dimOf(adaptor.getX(), 1)},
               elementOf(adaptor.getX())));
  return success();
}

LogicalResult GatherRowsOp::verify() {
  return checkSame(*this, dimOf(getX(), 0), dimOf(getIndex(), 0),
                   "rows of x and the index");
}

INFER(ScatterRowsOp) {
  if (failed(checkRank(location, adaptor.getDy(), 2, "dy")) ||
      failed(checkRank(location, adaptor.getIndex(), 1, "the index")))
    return failure();
  types.push_back(
      makeType({dimOf(adaptor.getIndex(), 0), dimOf(adaptor.getDy(), 1)},
               elementOf(adaptor.getDy())));
  return success();
}

INFER(CrossEntropyOp) {
  if (failed(checkRank(location, adaptor.getLogits(), 2, "logits")))
    return failure();
  types.append(2, rowType(adaptor.getLogits()));
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  if (!elementOf(getTargets()).isInteger(32))
    return emitOpError("needs i32 targets, got ") << getTargets().getType();
  return checkSame(*this, dimOf(getLogits(), 0), dimOf(getTargets(), 0),
                   "rows of logits and targets");
}

INFER(CrossEntropyGradOp) {
  types.push_back(adaptor.getLogits().getType());
  return success();
}

INFER(FusedCrossEntropyOp) {
  if (failed(checkRank(location, adaptor.getLogits(), 2, "logits")))
    return failure();
  types.append({rowType(adaptor.getLogits()), adaptor.getLogits().getType()});
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Tfm/TfmOps.cpp.inc"
