//===- OutlineProducts.cpp - Linear layers and their gradients ------------===//

#include "compiler/Kernel/Bodies.h"
#include "compiler/Kernel/Outliner.h"

using namespace mlir;
using namespace fsdpq;

Value Outliner::gemm(Location loc, Matrix a, Matrix b, Matrix c,
                     kern::ExtentAttr m, kern::ExtentAttr n, kern::ExtentAttr k,
                     double alpha, bool add) {
  return kern::GemmOp::create(
      builder, loc, a.value, b.value, c.value,
      a.transposed ? builder.getUnitAttr() : UnitAttr(),
      b.transposed ? builder.getUnitAttr() : UnitAttr(),
      builder.getF64FloatAttr(alpha), builder.getF64FloatAttr(add ? 1.0 : 0.0),
      m, n, k, builder.getI64IntegerAttr(a.pitch),
      builder.getI64IntegerAttr(b.pitch), builder.getI64IntegerAttr(c.pitch),
      builder.getI64IntegerAttr(a.offset), builder.getI64IntegerAttr(b.offset),
      builder.getI64IntegerAttr(c.offset));
}

Value Outliner::getPlainWeight(Value weight, Type elementType) {
  RankedTensorType type = typeOf(weight);
  auto format = qt::getBlockFormat(type.getElementType());
  if (!format)
    return weight;
  Value &plain = plainWeights[weight];
  if (plain)
    return plain;
  // Parameters used as one are dequantised one by one, each to its rows.
  auto view = weight.getDefiningOp<fsdp::ViewOp>();
  Location loc = weight.getLoc();
  Value result = empty(loc, RankedTensorType::get(type.getShape(), elementType));
  int64_t offset = 0;
  for (Attribute symbol : view.getParams()) {
    auto param = symbols.lookup<tfm::ParamOp>(
        cast<FlatSymbolRefAttr>(symbol).getValue());
    RankedTensorType partType = param.getTensorType();
    Value part = view.getParams().size() == 1
                     ? weight
                     : Value(fsdp::ViewOp::create(
                           builder, loc, partType, view.getGathered(),
                           builder.getArrayAttr(symbol)));
    int64_t elements = partType.getNumElements();
    result = call(
                 loc,
                 [&](OpBuilder &b, Location l) {
                   return kernels::buildDequantize(b, l, *format, elements,
                                                   elementType);
                 },
                 part, result,
                 constant((elements + format->block - 1) / format->block), {},
                 {}, offset)
                 .front();
    offset += elements;
  }
  return plain = result;
}

void Outliner::outlineLinear(tfm::LinearOp op) {
  Value w = getPlainWeight(op.getW(), element(op.getY()));
  int64_t k = columns(op.getX()), n = columns(op.getY());
  Value y = gemm(op.getLoc(), {op.getX(), k}, {w, k, 0, true},
                 {empty(op.getLoc(), op.getY().getType()), n}, rows(op.getX()),
                 constant(n), constant(k), 1.0, /*add=*/false);
  op.getY().replaceAllUsesWith(y);
  op.erase();
}

namespace {
/// One adapted part of a joined linear layer.
struct AdaptedPart {
  int64_t column;   ///< of the output where the part begins
  int64_t size;     ///< output columns
  int64_t adapter;  ///< number among the adapters
  int64_t factorRow; ///< row of b where the part begins
};
} // namespace

static SmallVector<AdaptedPart> getAdaptedParts(ArrayRef<int64_t> parts,
                                                ArrayRef<bool> adapted) {
  SmallVector<AdaptedPart> result;
  int64_t column = 0, factorRow = 0;
  for (auto [size, isAdapted] : llvm::zip(parts, adapted)) {
    if (isAdapted) {
      result.push_back({column, size, (int64_t)result.size(), factorRow});
      factorRow += size;
    }
    column += size;
  }
  return result;
}

void Outliner::outlineLoraLinear(tfm::LoraLinearOp op) {
  Location loc = op.getLoc();
  Value w = getPlainWeight(op.getW(), element(op.getY()));
  int64_t k = columns(op.getX()), n = columns(op.getY());
  int64_t width = columns(op.getU()), rank = columns(op.getB());
  kern::ExtentAttr m = rows(op.getX());
  Value x = op.getMask() ? dropSome(loc, op.getX(), *op.getMask()) : op.getX();
  Value u = gemm(loc, {x, k}, {op.getA(), k, 0, true},
                 {empty(loc, op.getU().getType()), width}, m, constant(width),
                 constant(k), 1.0, /*add=*/false);
  // Of the two sums one is written and the other added in its product's epilogue.
  // The large product adds where it can: the small ones, which only move bytes,
  // then write the result once instead of reading and writing it.
  SmallVector<AdaptedPart> parts =
      getAdaptedParts(op.getParts(), op.getAdapted());
  bool adaptersFirst = llvm::all_of(op.getAdapted(), [](bool b) { return b; });
  Value y = empty(loc, op.getY().getType());
  auto addFrozen = [&] {
    y = gemm(loc, {op.getX(), k}, {w, k, 0, true}, {y, n}, m, constant(n),
             constant(k), 1.0, adaptersFirst);
  };
  if (!adaptersFirst)
    addFrozen();
  for (AdaptedPart part : parts)
    y = gemm(loc, {u, width, part.adapter * rank},
             {op.getB(), rank, part.factorRow * rank, true}, {y, n, part.column},
             m, constant(part.size), constant(rank),
             op.getScale().convertToDouble(), /*add=*/!adaptersFirst);
  if (adaptersFirst)
    addFrozen();
  op->replaceAllUsesWith(ValueRange{y, u});
  op.erase();
}

void Outliner::outlineLoraLinearGrad(tfm::LoraLinearGradOp op) {
  Location loc = op.getLoc();
  double scale = op.getScale().convertToDouble();
  int64_t k = columns(op.getX()), n = columns(op.getDy());
  int64_t width = columns(op.getU()), rank = columns(op.getB());
  kern::ExtentAttr m = rows(op.getX());
  SmallVector<AdaptedPart> parts =
      getAdaptedParts(op.getParts(), op.getAdapted());

  bool needsInner = !op.getDx().use_empty() || !op.getDa().use_empty();
  Value v = needsInner ? empty(loc, op.getU().getType()) : Value();
  if (needsInner)
    for (AdaptedPart part : parts)
      v = gemm(loc, {op.getDy(), n, part.column},
               {op.getB(), rank, part.factorRow * rank},
               {v, width, part.adapter * rank}, m, constant(rank),
               constant(part.size), 1.0, /*add=*/false);

  if (!op.getDb().use_empty()) {
    Destination db = getDestination(op.getDb());
    Value sum = db.value;
    for (AdaptedPart part : parts)
      sum = gemm(loc, {op.getDy(), n, part.column, true},
                 {op.getU(), width, part.adapter * rank},
                 {sum, rank, part.factorRow * rank}, constant(part.size),
                 constant(rank), m, scale, db.accumulate);
    op.getDb().replaceAllUsesWith(sum);
  }
  if (!op.getDa().use_empty()) {
    Destination da = getDestination(op.getDa());
    Value x = op.getMask() ? dropSome(loc, op.getX(), *op.getMask()) : op.getX();
    Value sum = gemm(loc, {v, width, 0, true}, {x, k}, {da.value, k},
                     constant(width), constant(k), m, scale, da.accumulate);
    op.getDa().replaceAllUsesWith(sum);
  }
  if (!op.getDx().use_empty()) {
    Value w = getPlainWeight(op.getW(), element(op.getDx()));
    Value dx = gemm(loc, {v, width}, {op.getA(), k},
                    {empty(loc, op.getDx().getType()), k}, m, constant(k),
                    constant(width), scale, /*add=*/false);
    if (op.getMask())
      dx = dropSome(loc, dx, *op.getMask());
    dx = gemm(loc, {op.getDy(), n}, {w, k}, {dx, k}, m, constant(k), constant(n),
              1.0, /*add=*/true);
    op.getDx().replaceAllUsesWith(dx);
  }
  op.erase();
}

void Outliner::outlineMatmul(tfm::MatmulOp op) {
  Type operands = element(qt::isQuantized(element(op.getA())) ? op.getB() : op.getA());
  Value a = getPlainWeight(op.getA(), operands);
  Value b = getPlainWeight(op.getB(), operands);
  int64_t n = columns(op.getY());
  kern::ExtentAttr m = op.getTransA() ? constant(columns(a)) : rows(a);
  kern::ExtentAttr k = op.getTransA() ? rows(a) : constant(columns(a));
  Destination destination = getDestination(op.getY());
  Value y = gemm(op.getLoc(), {a, columns(a), 0, op.getTransA()},
                 {b, columns(b), 0, op.getTransB()}, {destination.value, n}, m,
                 constant(n), k, 1.0, destination.accumulate);
  op.getY().replaceAllUsesWith(y);
  op.erase();
}
