//===- LowerLookups.cpp - Tables in registers or in memory ----------------===//
//
// A table of 16 f32 fits a vector register of AVX-512 and is looked up with one
// permute, where LLVM's vectoriser would make a gather. So generics with such a
// look-up are vectorised here: over their only dimension, or, when the inner of
// two dimensions is a few elements (the codes of a byte), over the outer, with
// the inner unrolled and its vectors interleaved.
// Other tables become constant arrays.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cpu/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

#include <vector>

using namespace mlir;
using namespace fsdpq;

static constexpr int64_t tableLanes = 16;

static bool fitsRegister(kern::LookupOp lookup) {
  ShapedType table = lookup.getTable().getShapedType();
  return table.getNumElements() == tableLanes && table.getElementType().isF32();
}

/// Whether `emitVectors` can do this op.
static bool canVectorize(linalg::GenericOp op) {
  unsigned loops = op.getNumLoops();
  if ((loops != 1 && loops != 2) || op.getNumReductionLoops() != 0 ||
      op.getNumDpsInits() != 1 || !op.hasPureBufferSemantics())
    return false;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  if (ShapedType::isDynamic(sizes[0]) || sizes[0] % tableLanes != 0)
    return false;
  if (loops == 2 && (ShapedType::isDynamic(sizes[1]) || sizes[1] > 4 ||
                     !llvm::isPowerOf2_64(sizes[1])))
    return false;
  OpOperand *output = op.getDpsInitOperand(0);
  if (!op.getMatchingIndexingMap(output).isIdentity() ||
      op.payloadUsesValueFromOperand(output))
    return false;
  // Inner elements of the output are contiguous with the outer ones.
  auto outputType = cast<MemRefType>(output->get().getType());
  int64_t offset;
  SmallVector<int64_t> strides;
  if (failed(outputType.getStridesAndOffset(strides, offset)) ||
      strides.back() != 1 || (loops == 2 && strides[0] != sizes[1]))
    return false;
  AffineMap outerOnly =
      AffineMap::get(loops, 0, getAffineDimExpr(0, op.getContext()));
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!isa<MemRefType>(input->get().getType()) ||
        (map.getNumResults() != 0 &&
         (map != outerOnly || !cpu::hasUnitStride(input->get()))))
      return false;
  }
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      if (index.getDim() != 1)
        return false;
    } else if (auto lookup = dyn_cast<kern::LookupOp>(inner)) {
      if (!fitsRegister(lookup))
        return false;
    } else if (!inner.hasTrait<OpTrait::Vectorizable>() &&
               !isa<arith::ConstantOp>(inner)) {
      return false;
    }
  }
  return true;
}

static VectorType getVectorType(Type element) {
  return VectorType::get(tableLanes, element);
}

static Value emitPermute(OpBuilder &builder, kern::LookupOp lookup,
                         Value index) {
  Location loc = lookup.getLoc();
  auto type = getVectorType(builder.getF32Type());
  auto table = cast<DenseElementsAttr>(lookup.getTable());
  Value entries = arith::ConstantOp::create(builder, loc, table.reshape(type));
  // Takes the low four bits of each lane of the index.
  return LLVM::CallIntrinsicOp::create(
             builder, loc, type,
             builder.getStringAttr("llvm.x86.avx512.permvar.sf.512"),
             ValueRange{entries, index})
      .getResult(0);
}

/// The vector of the op's results at element `inner` of the inner dimension.
static Value emitBody(OpBuilder &builder, linalg::GenericOp op,
                      ArrayRef<Value> inputs, int64_t inner) {
  IRMapping mapping;
  for (auto [argument, value] : llvm::zip(op.getRegionInputArgs(), inputs))
    mapping.map(argument, value);
  auto lookUp = [&](Value value) -> Value {
    if (Value mapped = mapping.lookupOrNull(value))
      return mapped;
    Value splat = vector::BroadcastOp::create(
        builder, op.getLoc(), getVectorType(value.getType()), value);
    mapping.map(value, splat);
    return splat;
  };
  for (Operation &body : op.getBlock()->without_terminator()) {
    if (isa<linalg::IndexOp>(body)) {
      auto type = getVectorType(builder.getIndexType());
      mapping.map(body.getResult(0),
                  arith::ConstantOp::create(
                      builder, body.getLoc(),
                      DenseElementsAttr::get(type, APInt(64, inner)))
                      .getResult());
      continue;
    }
    if (isa<arith::ConstantOp>(body)) {
      mapping.map(body.getResult(0), builder.clone(body)->getResult(0));
      Value scalar = mapping.lookup(body.getResult(0));
      mapping.map(body.getResult(0),
                  vector::BroadcastOp::create(builder, body.getLoc(),
                                              getVectorType(scalar.getType()),
                                              scalar)
                      .getResult());
      continue;
    }
    if (auto lookup = dyn_cast<kern::LookupOp>(body)) {
      mapping.map(lookup.getResult(),
                  emitPermute(builder, lookup, lookUp(lookup.getIndex())));
      continue;
    }
    OperationState state(body.getLoc(), body.getName());
    for (Value operand : body.getOperands())
      state.addOperands(lookUp(operand));
    for (Type type : body.getResultTypes())
      state.addTypes(getVectorType(type));
    state.addAttributes(body.getAttrs());
    Operation *clone = builder.create(state);
    for (auto [from, to] : llvm::zip(body.getResults(), clone->getResults()))
      mapping.map(from, to);
  }
  return lookUp(op.getBlock()->getTerminator()->getOperand(0));
}

static void emitVectors(linalg::GenericOp op) {
  Location loc = op.getLoc();
  OpBuilder builder(op);
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  int64_t unroll = sizes.size() == 2 ? sizes[1] : 1;
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value output = op.getDpsInits()[0];
  if (sizes.size() == 2) {
    SmallVector<ReassociationIndices> together = {{0, 1}};
    output = memref::CollapseShapeOp::create(builder, loc, output, together);
  }
  auto loop = scf::ForOp::create(builder, loc, index(0), index(sizes[0]),
                                 index(tableLanes));
  builder.setInsertionPointToStart(loop.getBody());
  Value outer = loop.getInductionVar();
  SmallVector<Value> inputs;
  for (Value input : op.getDpsInputs()) {
    auto type = cast<MemRefType>(input.getType());
    auto vectorType = getVectorType(type.getElementType());
    Value value;
    if (type.getRank() == 0) {
      value = memref::LoadOp::create(builder, loc, input);
      value = vector::BroadcastOp::create(builder, loc, vectorType, value);
    } else {
      value = vector::LoadOp::create(builder, loc, vectorType, input,
                                     ValueRange{outer});
    }
    inputs.push_back(value);
  }
  std::vector<Value> results;
  for (int64_t inner = 0; inner < unroll; ++inner)
    results.push_back(emitBody(builder, op, inputs, inner));

  // Element e of the stored run is lane e / unroll of results[e % unroll].
  auto interleave = [&](Value first, Value second) -> Value {
    int64_t lanes = cast<VectorType>(first.getType()).getDimSize(0);
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < lanes; ++lane)
      llvm::append_values(order, lane, lanes + lane);
    return vector::ShuffleOp::create(builder, loc, first, second, order);
  };
  for (int64_t half = unroll / 2; half > 0; half /= 2)
    for (int64_t inner = 0; inner < half; ++inner)
      results[inner] = interleave(results[inner], results[inner + half]);
  Value position = arith::MulIOp::create(builder, loc, outer, index(unroll));
  vector::StoreOp::create(builder, loc, results.front(), output,
                          ValueRange{position});
  op.erase();
}

/// A look-up as a load from a constant array of the module.
static void expandLookup(kern::LookupOp lookup, SymbolTable &symbols) {
  Location loc = lookup.getLoc();
  auto table = cast<DenseElementsAttr>(lookup.getTable());
  auto type =
      MemRefType::get(table.getType().getShape(), table.getElementType());
  OpBuilder builder(lookup.getContext());
  auto global = memref::GlobalOp::create(
      builder, loc, "table", builder.getStringAttr("private"), type, table,
      /*constant=*/true, builder.getI64IntegerAttr(64));
  symbols.insert(global);

  builder.setInsertionPoint(lookup);
  Value mask = arith::ConstantIntOp::create(builder, loc, builder.getI32Type(),
                                            table.getNumElements() - 1);
  Value index = arith::AndIOp::create(builder, loc, lookup.getIndex(), mask);
  index =
      arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), index);
  Value array =
      memref::GetGlobalOp::create(builder, loc, type, global.getSymName());
  Value entry = memref::LoadOp::create(builder, loc, array, index);
  lookup.replaceAllUsesWith(entry);
  lookup.erase();
}

LogicalResult cpu::lowerLookups(func::FuncOp function,
                                const LoweringOptions &options) {
  SmallVector<linalg::GenericOp> generics;
  function.walk([&](kern::LookupOp lookup) {
    auto generic = dyn_cast<linalg::GenericOp>(lookup->getParentOp());
    if (generic && !llvm::is_contained(generics, generic))
      generics.push_back(generic);
  });
  if (options.permutes && options.vectorBits == 512)
    for (linalg::GenericOp op : generics)
      if (canVectorize(op))
        emitVectors(op);

  SmallVector<kern::LookupOp> lookups;
  function.walk([&](kern::LookupOp lookup) { lookups.push_back(lookup); });
  SymbolTable symbols(function->getParentOp());
  for (kern::LookupOp lookup : lookups) {
    if (isa<VectorType>(lookup.getIndex().getType()))
      return lookup.emitOpError("a kernel's body looks up scalars only");
    expandLookup(lookup, symbols);
  }
  return success();
}
