#include "compiler/Kernel/Outliner.h"
#include "compiler/Kernel/Bodies.h"
#include "compiler/Kernel/RopeFrequencies.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace fsdpq;

//===----------------------------------------------------------------------===//
// What all operations share
//===----------------------------------------------------------------------===//

kern::ExtentAttr Outliner::constant(int64_t value) {
  return kern::ExtentAttr::getConstant(builder.getContext(), value);
}

kern::ExtentAttr Outliner::rows(Value value) {
  RankedTensorType type = typeOf(value);
  StringRef name = tfm::getDimName(type, 0);
  int64_t capacity = type.getDimSize(0);
  MLIRContext *context = builder.getContext();
  if (name == tfm::tokensDim)
    return kern::ExtentAttr::get(context, "tokens", 1, 1, 0, 0, capacity);
  if (name == tfm::labelsDim)
    return kern::ExtentAttr::get(context, "labels", 1, 1, 0, 0, capacity);
  if (name == tfm::chunkDim) // what is left of the labels, a chunk at most
    return kern::ExtentAttr::get(context, "labels", 1, 1, -capacity, 0, capacity);
  return constant(capacity);
}

kern::FuncOp Outliner::addKernel(Location loc, BuildKernelFn build) {
  OpBuilder atStart = OpBuilder::atBlockBegin(&architecture.getBody().front());
  kern::FuncOp kernel = build(atStart, loc);
  kernel->remove(); // the symbol table inserts it under a free name
  symbols.insert(kernel, architecture.getBody().front().begin());
  ++numKernels;
  return kernel;
}

ResultRange Outliner::call(Location loc, BuildKernelFn build, ValueRange inputs,
                           ValueRange outs, kern::ExtentAttr grid,
                           ArrayRef<Attribute> extents,
                           ArrayRef<StringRef> scalars,
                           ArrayRef<int64_t> outOffsets) {
  kern::FuncOp kernel = addKernel(loc, build);
  return kern::CallOp::create(
             builder, loc, FlatSymbolRefAttr::get(kernel), inputs, outs, grid,
             builder.getArrayAttr(extents), builder.getStrArrayAttr(scalars),
             outOffsets.empty() ? DenseI64ArrayAttr()
                                : builder.getDenseI64ArrayAttr(outOffsets),
             FloatAttr())
      .getResults();
}

Value Outliner::empty(Location loc, Type type) {
  return kern::EmptyOp::create(builder, loc, type);
}

Outliner::Destination Outliner::getDestination(Value result) {
  if (result.hasOneUse())
    if (auto sum = dyn_cast<tfm::AccumulateOp>(*result.getUsers().begin())) {
      Value gradient = fsdp::GradientOp::create(
          builder, sum.getLoc(), result.getType(), sum.getParams());
      sum.erase();
      return {gradient, true};
    }
  return {empty(result.getLoc(), result.getType()), false};
}

Value Outliner::getSum(Value result) {
  Destination destination = getDestination(result);
  if (destination.accumulate)
    return destination.value;
  return kern::FillOp::create(builder, result.getLoc(), destination.value);
}

//===----------------------------------------------------------------------===//
// Forward operations
//===----------------------------------------------------------------------===//

void Outliner::outlineNorm(Operation *op, ValueRange inputs, Value w,
                           Attribute eps, bool addResidual) {
  Value x = inputs.front();
  SmallVector<Value> operands(inputs), outs;
  operands.push_back(w);
  for (Value result : op->getResults())
    outs.push_back(empty(op->getLoc(), result.getType()));
  ResultRange results = call(
      op->getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildRmsNorm(b, loc, columns(x), element(x),
                                     tfm::getBoundFloat(eps), addResidual);
      },
      operands, outs, rows(x));
  op->replaceAllUsesWith(results);
  op->erase();
}

LogicalResult Outliner::outlineRopeTable(tfm::RopeTableOp op) {
  FailureOr<SmallVector<double>> frequencies = computeRopeFrequencies(op);
  if (failed(frequencies))
    return failure();
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildRopeTable(b, loc, *frequencies,
                                       element(op.getTable()));
      },
      op.getPositions(), empty(op.getLoc(), op.getTable().getType()),
      rows(op.getTable()));
  op->replaceAllUsesWith(results);
  op->erase();
  return success();
}

void Outliner::outlineRope(tfm::RopeOp op) {
  // In place: where `x` is needed afterwards the exec phase copies it first.
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildRope(b, loc, columns(op.getX()),
                                  columns(op.getTable()),
                                  tfm::getBoundInt(op.getHeads()),
                                  op.getInverse(), element(op.getX()));
      },
      op.getTable(), op.getX(), rows(op.getX()));
  op->replaceAllUsesWith(results);
  op->erase();
}

void Outliner::outlineCast(tfm::CastOp op) {
  // What has a static size, as parameters, is cut without regard to its rows:
  // one kernel for all.
  RankedTensorType type = typeOf(op.getY());
  kern::ExtentAttr items = rows(op.getY());
  int64_t width = columns(op.getY());
  if (items.isConstant()) {
    width = std::gcd(type.getNumElements(), kernels::flatTile);
    items = constant(type.getNumElements() / width);
  }
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildCast(b, loc, width, element(op.getX()),
                                  element(op.getY()));
      },
      op.getX(), empty(op.getLoc(), type), items);
  op->replaceAllUsesWith(results);
  op.erase();
}

void Outliner::setAttentionFlops(ResultRange results,
                                 const kernels::AttentionShape &shape,
                                 int64_t tokens, int64_t products) {
  // Each product takes 2 operations a pair of a query and a key that it sees,
  // and an element of the head; of a row's pairs half are seen.
  double row = rowTokens > 0 ? std::min(rowTokens, tokens) : tokens;
  double keys = std::min<double>(shape.window.value_or(tokens), row / 2);
  double flops = 2.0 * products * tokens * keys * shape.heads * shape.headDim;
  results.front().getDefiningOp<kern::CallOp>().setFlopsAttr(
      builder.getF64FloatAttr(flops));
}

Value Outliner::dropSome(Location loc, Value x, tfm::DropoutAttr mask) {
  auto place = kern::ExtentAttr::get(builder.getContext(), kern::layerScalar,
                                     tfm::DropoutAttr::lastSite + 1, 1, 0, mask.getSite(), INT32_MAX);
  return call(
             loc,
             [&](OpBuilder &b, Location l) {
               return kernels::buildDropout(b, l, columns(x),
                                            mask.getRate().getValueAsDouble(),
                                            element(x));
             },
             x, empty(loc, x.getType()), rows(x), {place},
             StringRef("dropout_key"))
      .front();
}

void Outliner::outlineAttention(tfm::AttentionOp op) {
  kernels::AttentionShape shape;
  shape.heads = tfm::getBoundInt(op.getHeads());
  shape.kvHeads = tfm::getBoundInt(op.getKvHeads());
  shape.headDim = tfm::getHeadDim(op);
  if (Attribute window = op.getWindowAttr())
    shape.window = tfm::getBoundInt(window);
  shape.scale = op.getScaleAttr() ? tfm::getBoundFloat(op.getScaleAttr())
                                  : 1.0 / std::sqrt(double(shape.headDim));
  shape.packed = op.getQkv().size() == 1;
  shape.element = element(op.getO());
  SmallVector<Value> inputs(op.getQkv());
  inputs.push_back(op.getSegments());
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildAttention(b, loc, shape);
      },
      inputs,
      {empty(op.getLoc(), op.getO().getType()),
       empty(op.getLoc(), op.getLse().getType())},
      rows(op.getO()).scaled(shape.heads, kernels::attentionTile));
  setAttentionFlops(results, shape, typeOf(op.getO()).getDimSize(0), 2);
  op->replaceAllUsesWith(results);
  op->erase();
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

LogicalResult Outliner::outline(Operation *op) {
  Location loc = op->getLoc();
  // An operation whose kernel takes the operands and gives the results, one
  // item a row.
  auto byRows = [&](auto build, Value like) {
    SmallVector<Value> outs;
    for (Value result : op->getResults())
      outs.push_back(empty(loc, result.getType()));
    ResultRange results = call(
        loc, [&](OpBuilder &b, Location l) { return build(b, l); },
        op->getOperands(), outs, rows(like));
    op->replaceAllUsesWith(results);
    op->erase();
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tfm::EmbeddingOp o) {
        return byRows(
            [&](OpBuilder &b, Location l) {
              return kernels::buildEmbedding(
                  b, l, typeOf(o.getTable()).getDimSize(0),
                  columns(o.getTable()), element(o.getY()));
            },
            o.getY());
      })
      .Case([&](tfm::SiluOp o) {
        return byRows(
            [&](OpBuilder &b, Location l) {
              return kernels::buildSilu(b, l, columns(o.getX()), element(o.getX()));
            },
            o.getX());
      })
      .Case([&](tfm::SiluGradOp o) {
        return byRows(
            [&](OpBuilder &b, Location l) {
              return kernels::buildSiluGrad(b, l, columns(o.getX()),
                                            element(o.getX()));
            },
            o.getX());
      })
      .Case([&](tfm::AddOp o) {
        return byRows(
            [&](OpBuilder &b, Location l) {
              return kernels::buildAdd(b, l, columns(o.getA()), element(o.getA()));
            },
            o.getA());
      })
      .Case([&](tfm::MulOp o) {
        return byRows(
            [&](OpBuilder &b, Location l) {
              return kernels::buildMul(b, l, columns(o.getA()), element(o.getA()));
            },
            o.getA());
      })
      .Case([&](tfm::ScaleOp o) {
        return byRows(
            [&](OpBuilder &b, Location l) {
              return kernels::buildScale(b, l, columns(o.getX()),
                                         tfm::getBoundFloat(o.getFactor()),
                                         element(o.getX()));
            },
            o.getX());
      })
      .Case([&](tfm::GatedSiluOp o) {
        return byRows(
            [&](OpBuilder &b, Location l) {
              return kernels::buildGatedSilu(b, l, columns(o.getY()),
                                             o.getGateUp().size() == 1,
                                             element(o.getY()));
            },
            o.getY());
      })
      .Case([&](tfm::CastOp o) { return outlineCast(o), success(); })
      .Case([&](tfm::DropoutOp o) {
        o.getY().replaceAllUsesWith(dropSome(loc, o.getX(), o.getMask()));
        o->erase();
        return success();
      })
      .Case([&](tfm::GatherRowsOp o) {
        // The index is for the gradient alone.
        ResultRange results = call(
            loc,
            [&](OpBuilder &b, Location l) {
              return kernels::buildGatherRows(b, l, columns(o.getX()),
                                              element(o.getX()));
            },
            {o.getX(), o.getRows()}, empty(loc, o.getY().getType()),
            rows(o.getY()));
        o->replaceAllUsesWith(results);
        o->erase();
        return success();
      })
      .Case([&](tfm::ScatterRowsOp o) {
        return byRows(
            [&](OpBuilder &b, Location l) {
              return kernels::buildScatterRows(b, l, columns(o.getDy()),
                                               element(o.getDy()));
            },
            o.getDx());
      })
      .Case([&](tfm::SplatOp o) {
        ResultRange results = call(
            loc,
            [&](OpBuilder &b, Location l) {
              return kernels::buildSplat(b, l, element(o.getResult()));
            },
            {}, empty(loc, o.getResult().getType()), rows(o.getResult()), {},
            o.getScalar());
        o->replaceAllUsesWith(results);
        o->erase();
        return success();
      })
      .Case([&](tfm::EmitOp o) {
        Value port = kern::PortOp::create(builder, loc, o.getValue().getType(),
                                          o.getOutput());
        kern::CopyOp::create(builder, loc, o.getValue(), port);
        o->erase();
        return success();
      })
      .Case([&](tfm::RmsNormOp o) {
        outlineNorm(o, o.getX(), o.getW(), o.getEps(), /*addResidual=*/false);
        return success();
      })
      .Case([&](tfm::AddRmsNormOp o) {
        outlineNorm(o, {o.getX(), o.getResidual()}, o.getW(), o.getEps(),
                    /*addResidual=*/true);
        return success();
      })
      .Case([&](tfm::RopeTableOp o) { return outlineRopeTable(o); })
      .Case([&](tfm::GradNormOp o) { return outlineGradNorm(o); })
      .Case([&](tfm::OptimizerUpdateOp o) { return outlineUpdate(o); })
      .Case([&](tfm::RopeOp o) { return outlineRope(o), success(); })
      .Case([&](tfm::AttentionOp o) { return outlineAttention(o), success(); })
      .Case([&](tfm::LinearOp o) { return outlineLinear(o), success(); })
      .Case([&](tfm::LoraLinearOp o) { return outlineLoraLinear(o), success(); })
      .Case([&](tfm::LoraLinearGradOp o) {
        return outlineLoraLinearGrad(o), success();
      })
      .Case([&](tfm::MatmulOp o) { return outlineMatmul(o), success(); })
      .Case([&](tfm::RmsNormGradOp o) { return outlineRmsNormGrad(o), success(); })
      .Case([&](tfm::RmsNormWeightGradOp o) {
        return outlineRmsNormWeightGrad(o), success();
      })
      .Case([&](tfm::AttentionGradOp o) {
        return outlineAttentionGrad(o), success();
      })
      .Case([&](tfm::GatedSiluGradOp o) {
        return outlineGatedSiluGrad(o), success();
      })
      .Case([&](tfm::EmbeddingGradOp o) {
        return outlineEmbeddingGrad(o), success();
      })
      .Case([&](tfm::CrossEntropyOp o) { return outlineCrossEntropy(o), success(); })
      .Case([&](tfm::CrossEntropyGradOp o) {
        return outlineCrossEntropyGrad(o), success();
      })
      .Case([&](tfm::FusedCrossEntropyOp o) {
        return outlineFusedCrossEntropy(o), success();
      })
      .Case([&](tfm::ReportLossOp o) { return outlineReportLoss(o), success(); })
      .Case([&](tfm::AccumulateOp o) { return outlineAccumulate(o), success(); })
      .Default([](Operation *) { return success(); });
}

LogicalResult Outliner::run(FunctionOpInterface function) {
  plainWeights.clear();
  Block &body = function.getFunctionBody().front();
  // An operation may erase the tfm.accumulate that follows it, so the next one
  // is looked up only after.
  for (auto it = body.begin(); it != body.end();) {
    Operation *op = &*it;
    builder.setInsertionPoint(op);
    Operation *anchor = kern::EmptyOp::create(
        builder, op->getLoc(), RankedTensorType::get({1}, builder.getF32Type()));
    builder.setInsertionPoint(anchor);
    LogicalResult outlined = outline(op);
    bool erased = anchor->getNextNode() != op;
    it = erased ? std::next(Block::iterator(anchor))
                : std::next(Block::iterator(op));
    anchor->erase();
    if (failed(outlined))
      return failure();
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isa<fsdp::ViewOp, fsdp::LocalOp>(op) && op.use_empty())
      op.erase();
  return success();
}
