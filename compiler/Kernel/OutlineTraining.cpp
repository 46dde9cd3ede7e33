//===- OutlineTraining.cpp - Losses, gradient sums, optimizers ------------===//

#include "compiler/Kernel/Bodies.h"
#include "compiler/Kernel/Outliner.h"

#include <numeric>

using namespace mlir;
using namespace fsdpq;

void Outliner::outlineCrossEntropy(tfm::CrossEntropyOp op) {
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildCrossEntropy(b, loc, columns(op.getLogits()),
                                          element(op.getLogits()));
      },
      op->getOperands(),
      {empty(op.getLoc(), op.getLoss().getType()),
       empty(op.getLoc(), op.getLse().getType())},
      rows(op.getLogits()));
  op->replaceAllUsesWith(results);
  op.erase();
}

void Outliner::outlineFusedCrossEntropy(tfm::FusedCrossEntropyOp op) {
  ResultRange results = call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildFusedCrossEntropy(b, loc, columns(op.getLogits()),
                                               element(op.getLogits()));
      },
      op.getTargets(),
      {op.getLogits(), empty(op.getLoc(), op.getLoss().getType())},
      rows(op.getLogits()), {}, op.getWeight());
  op.getDlogits().replaceAllUsesWith(results[0]);
  op.getLoss().replaceAllUsesWith(results[1]);
  op.erase();
}

void Outliner::outlineReportLoss(tfm::ReportLossOp op) {
  Type elementType = element(op.getRows());
  Value loss = kern::PortOp::create(builder, op.getLoc(),
                                    RankedTensorType::get({1}, elementType),
                                    "loss");
  call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildReportLoss(b, loc, elementType);
      },
      op.getRows(), loss, constant(1), rows(op.getRows()), op.getWeight());
  op.erase();
}

void Outliner::outlineAccumulate(tfm::AccumulateOp op) {
  RankedTensorType type = typeOf(op.getGradient());
  int64_t elements = type.getNumElements();
  Value sum = fsdp::GradientOp::create(builder, op.getLoc(), type, op.getParams());
  call(
      op.getLoc(),
      [&](OpBuilder &b, Location loc) {
        return kernels::buildAccumulate(b, loc, elements, type.getElementType());
      },
      op.getGradient(), sum,
      constant(elements / std::gcd(elements, kernels::flatTile)));
  op.erase();
}

static int64_t countLayers(fsdp::UnitOp unit) {
  return unit.getLayers() ? unit.getLayers()->size() : 1;
}

/// Elements of this rank's ranges of a trainable unit, all layers together.
static int64_t getFlatElements(fsdp::UnitOp unit, fsdp::MeshOp mesh) {
  int64_t shards = mesh ? mesh.getNumShards() : 1;
  return countLayers(unit) * static_cast<int64_t>(*unit.getBytes()) / 4 / shards;
}

static LogicalResult checkUnit(Operation *op, Attribute symbol,
                               fsdp::UnitOp unit) {
  if (unit && unit.getTrainable() && unit.getBytes())
    return success();
  return op->emitError("[FSDPQ-0403] ")
         << symbol
         << " is no trainable unit with a layout; run tfm-fuse-optimizer first";
}

LogicalResult Outliner::outlineGradNorm(tfm::GradNormOp op) {
  Location loc = op.getLoc();
  Type f32 = builder.getF32Type(), f64 = builder.getF64Type();
  fsdp::MeshOp mesh = fsdp::MeshOp::of(architecture);
  int64_t shards = mesh ? mesh.getNumShards() : 1;
  bool deterministic = mesh && mesh.getDeterministic();
  auto oneType = RankedTensorType::get({1}, f64);
  Value sum;
  for (Attribute symbol : op.getParams()) {
    auto unit = symbols.lookup<fsdp::UnitOp>(
        cast<FlatSymbolRefAttr>(symbol).getValue());
    if (failed(checkUnit(op, symbol, unit)))
      return failure();
    int64_t layers = countLayers(unit), elements = getFlatElements(unit, mesh);
    // Ranges end at multiples of the smallest tile whatever the number of ranks.
    int64_t tile = deterministic ? fsdp::shardAlignment / 4
                                 : std::gcd(elements, kernels::flatTile);
    int64_t items = elements / tile, ranks = 1;
    Value gradient = fsdp::FlatOp::create(
        builder, loc, RankedTensorType::get({elements}, f32), unit.getSymName(),
        "gradient");
    // One thread adds what is left up: tiles of many are added up before.
    const bool isLong = !deterministic && items > 4 * kernels::flatTile;
    const int64_t padded =
        isLong ? llvm::alignTo(items, kernels::flatTile) : items;
    Value partials = empty(loc, RankedTensorType::get({padded}, f64));
    if (padded != items)
      partials = kern::FillOp::create(builder, loc, partials);
    partials = call(
                   loc,
                   [&](OpBuilder &b, Location l) {
                     return kernels::buildSumSquares(b, l, elements, tile, f32);
                   },
                   gradient, partials, constant(items))
                   .front();
    if (isLong) {
      items = padded / kernels::flatTile;
      partials = call(
                     loc,
                     [&](OpBuilder &b, Location l) {
                       return kernels::buildSums(b, l, padded, kernels::flatTile);
                     },
                     partials, empty(loc, RankedTensorType::get({items}, f64)),
                     constant(items))
                     .front();
    }
    if (deterministic && shards > 1) {
      ranks = shards;
      partials = fsdp::AllGatherOp::create(
          builder, loc, RankedTensorType::get({shards * items}, f64), partials);
    }
    if (!deterministic) // in the order in which they lie
      layers = 1;
    bool continues = static_cast<bool>(sum);
    sum = call(
              loc,
              [&](OpBuilder &b, Location l) {
                return kernels::buildAddPartials(b, l, ranks, layers,
                                                 items / layers, continues);
              },
              partials, continues ? sum : empty(loc, oneType), constant(1))
              .front();
  }
  if (!deterministic && shards > 1)
    sum = fsdp::AllReduceOp::create(builder, loc, oneType, sum, UnitAttr());
  Value port =
      kern::PortOp::create(builder, loc, op.getNorm().getType(), "grad_norm");
  ResultRange norm = call(
      loc,
      [&](OpBuilder &b, Location l) { return kernels::buildNorm(b, l, f32); },
      sum, port, constant(1));
  op->replaceAllUsesWith(norm);
  op.erase();
  return success();
}

LogicalResult Outliner::outlineUpdate(tfm::OptimizerUpdateOp op) {
  Location loc = op.getLoc();
  bool adam = op.getRule() == "adamw" || op.getRule() == "adam";
  for (Attribute symbol : op.getParams()) {
    auto unit = symbols.lookup<fsdp::UnitOp>(
        cast<FlatSymbolRefAttr>(symbol).getValue());
    if (failed(checkUnit(op, symbol, unit)))
      return failure();
    int64_t elements = getFlatElements(unit, fsdp::MeshOp::of(architecture));
    auto type = RankedTensorType::get({elements}, builder.getF32Type());
    SmallVector<StringRef> buffers = {"data", "gradient"};
    if (op.getRule() != "sgd")
      buffers.append({"state0", "state1"});
    SmallVector<Value> outs;
    for (StringRef buffer : buffers)
      outs.push_back(fsdp::FlatOp::create(builder, loc, type, unit.getSymName(),
                                          buffer));
    SmallVector<StringRef> scalars = {"max_grad_norm", "lr"};
    if (adam)
      scalars.append({"bias_correction1", "bias_correction2"});
    call(
        loc,
        [&](OpBuilder &b, Location l) {
          return kernels::buildOptimizer(b, l, op.getRule(), op.getOptions(),
                                         elements, builder.getF32Type());
        },
        op.getNorm(), outs, constant(elements / std::gcd(elements, kernels::flatTile)), {},
        scalars);
  }
  op.erase();
  return success();
}
