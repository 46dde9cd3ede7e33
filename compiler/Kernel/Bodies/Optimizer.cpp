//===- Optimizer.cpp - Gradient norms and optimizer steps -----------------===//
//
// The arithmetic is that of torch.nn.utils.clip_grad_norm_ and of torch.optim
// (single tensor, not capturable). Coefficients that are the same for all
// elements are computed in f64, as Python does.
//
//===----------------------------------------------------------------------===//

#include "compiler/Kernel/Bodies/BodyBuilder.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::kernels;

kern::FuncOp kernels::buildSumSquares(OpBuilder &builder, Location loc,
                                      int64_t elements, int64_t tile,
                                      Type element) {
  BodyBuilder b(builder, loc,
                "sum_squares_" + Twine(elements) + "_t" + Twine(tile) + "_" +
                    nameOf(element),
                {arrayOf(element, elements), rowsOf(builder.getF64Type())},
                element);
  Type f64 = b.getF64Type();
  Value g = b.load(b.argument(0), b.mul(b.item(), b.index(tile)), tile);
  Value sum = b.sum(g, f64, [&](ValueRange v) {
    Value wide = b.toFloat(v[0], f64);
    return b.mul(wide, wide);
  });
  b.storeScalar(sum, b.argument(1), b.item());
  return b.getKernel();
}

kern::FuncOp kernels::buildSums(OpBuilder &builder, Location loc,
                                int64_t elements, int64_t tile) {
  Type f64 = builder.getF64Type();
  BodyBuilder b(builder, loc, "sums_" + Twine(elements) + "_t" + Twine(tile),
                {arrayOf(f64, elements), rowsOf(f64)}, f64);
  Value x = b.load(b.argument(0), b.mul(b.item(), b.index(tile)), tile);
  b.storeScalar(b.sum(x, f64, [](ValueRange v) { return v[0]; }), b.argument(1),
                b.item());
  return b.getKernel();
}

kern::FuncOp kernels::buildAddPartials(OpBuilder &builder, Location loc,
                                       int64_t ranks, int64_t layers,
                                       int64_t partials, bool continues) {
  Type f64 = builder.getF64Type();
  BodyBuilder b(builder, loc,
                "add_partials_" + Twine(ranks) + "x" + Twine(layers) + "x" +
                    Twine(partials),
                {arrayOf(f64, ranks * layers * partials), arrayOf(f64, 1)}, f64);
  // Ranks' ranges follow each other within a layer.
  auto loop = [&](int64_t count, Value start, auto body) {
    return b.loop(b.index(0), b.index(count), 1, start,
                  [&](Value i, ValueRange carried) {
                    return SmallVector<Value>{body(i, carried[0])};
                  })[0];
  };
  Value start = continues ? b.loadScalar(b.argument(1), b.index(0))
                          : b.constant(f64, 0);
  Value sum = loop(layers, start, [&](Value layer, Value outer) -> Value {
    return loop(ranks, outer, [&](Value rank, Value middle) -> Value {
      Value row = b.add(b.mul(rank, b.index(layers)), layer);
      Value first = b.mul(row, b.index(partials));
      return loop(partials, middle, [&](Value i, Value inner) -> Value {
        return b.add(inner, b.loadScalar(b.argument(0), b.add(first, i)));
      });
    });
  });
  b.storeScalar(sum, b.argument(1), b.index(0));
  return b.getKernel();
}

kern::FuncOp kernels::buildNorm(OpBuilder &builder, Location loc, Type element) {
  Type f64 = builder.getF64Type();
  BodyBuilder b(builder, loc, "norm_" + Twine(nameOf(element)),
                {arrayOf(f64, 1), arrayOf(element, 1)}, element);
  Value sum = b.loadScalar(b.argument(0), b.index(0));
  Value norm = math::SqrtOp::create(b, sum);
  b.storeScalar(b.toElement(norm), b.argument(1), b.index(0));
  return b.getKernel();
}

namespace {

/// The body of one optimizer rule.
class OptimizerBody : public BodyBuilder {
public:
  OptimizerBody(OpBuilder &outer, Location loc, StringRef rule,
                DictionaryAttr options, TypeRange types, unsigned states,
                Type element)
      : BodyBuilder(outer, loc, rule + "_" + nameOf(element), types, element),
        options(options), scalars(2 + states) {}

  /// Given the parameter, its clipped gradient and its state, the new parameter
  /// and state.
  SmallVector<Value> emitAdam(ValueRange values, bool isDecoupled);
  SmallVector<Value> emitSgd(ValueRange values);
  SmallVector<Value> emitAdadelta(ValueRange values);
  /// Scalars that rules use, before the loop over elements.
  void emitAdamScalars();
  void emitRate() { rate = toElement(argument(scalars + 2)); }

  Value emitClipFactor();
  Value squareRoot(Value value) { return math::SqrtOp::create(*this, value); }

private:
  double option(StringRef name) {
    return options.getAs<FloatAttr>(name).getValueAsDouble();
  }
  Value wide(double value) { return constant(getF64Type(), value); }

  DictionaryAttr options;
  unsigned scalars; ///< number of the last buffer; the scalars follow it
  Value rate, step, keep, inverseRoot;
};

} // namespace

Value OptimizerBody::emitClipFactor() {
  Value norm = toFloat(loadScalar(argument(0), index(0)), getF64Type());
  Value factor = div(argument(scalars + 1), add(norm, wide(1e-6)));
  factor = arith::MinimumFOp::create(*this, factor, wide(1));
  return toElement(factor);
}

void OptimizerBody::emitAdamScalars() {
  Value lr = argument(scalars + 2);
  step = toElement(div(lr, argument(scalars + 3)));
  inverseRoot = toElement(div(wide(1), squareRoot(argument(scalars + 4))));
  keep = toElement(sub(wide(1), mul(lr, wide(option("weight_decay")))));
}

SmallVector<Value> OptimizerBody::emitAdam(ValueRange values,
                                           bool isDecoupled) {
  Value p = values[0], g = values[1], m = values[2], v = values[3];
  double beta1 = option("beta1"), beta2 = option("beta2");
  if (isDecoupled)
    p = mul(p, keep);
  else
    g = add(g, mul(p, real(option("weight_decay"))));
  m = add(mul(m, real(beta1)), mul(g, real(1 - beta1)));
  v = add(mul(v, real(beta2)), mul(mul(g, g), real(1 - beta2)));
  Value denominator =
      add(mul(squareRoot(v), inverseRoot), real(option("epsilon")));
  p = sub(p, mul(step, div(m, denominator)));
  return {p, m, v};
}

SmallVector<Value> OptimizerBody::emitSgd(ValueRange values) {
  return {sub(values[0], mul(rate, values[1]))};
}

SmallVector<Value> OptimizerBody::emitAdadelta(ValueRange values) {
  Value p = values[0], g = values[1], squares = values[2], moved = values[3];
  double rho = option("rho");
  Value eps = real(option("epsilon"));
  squares = add(mul(squares, real(rho)), mul(mul(g, g), real(1 - rho)));
  Value delta =
      mul(div(squareRoot(add(moved, eps)), squareRoot(add(squares, eps))), g);
  moved = add(mul(moved, real(rho)), mul(mul(delta, delta), real(1 - rho)));
  p = sub(p, mul(rate, delta));
  return {p, squares, moved};
}

kern::FuncOp kernels::buildOptimizer(OpBuilder &builder, Location loc,
                                     StringRef rule, DictionaryAttr options,
                                     int64_t elements, Type element) {
  bool isAdam = rule == "adam" || rule == "adamw";
  unsigned states = rule == "sgd" ? 0 : 2;
  Type f64 = builder.getF64Type();
  SmallVector<Type> types{arrayOf(element, 1)};
  types.append(2 + states, arrayOf(element, elements));
  types.append(isAdam ? 4 : 2, f64);
  OptimizerBody b(builder, loc, rule, options, types, states, element);

  Value factor = b.emitClipFactor();
  if (isAdam)
    b.emitAdamScalars();
  else
    b.emitRate();
  int64_t size = flatItemSize(elements);
  Value begin = b.mul(b.item(), b.index(size));
  SmallVector<Value> tiles;
  for (unsigned buffer = 0; buffer < 2 + states; ++buffer)
    tiles.push_back(b.load(b.argument(1 + buffer), begin, size));
  // One pass gives the parameter, the state and the zero gradient.
  SmallVector<Type> results(2 + states, element);
  auto updated = b.mapAll(tiles, results, [&](ValueRange v) {
    SmallVector<Value> values(v);
    values[1] = b.mul(values[1], factor);
    SmallVector<Value> next = isAdam ? b.emitAdam(values, rule == "adamw")
                              : rule == "sgd" ? b.emitSgd(values)
                                              : b.emitAdadelta(values);
    next.insert(next.begin() + 1, b.real(0));
    return next;
  });
  for (unsigned buffer = 0; buffer < 2 + states; ++buffer)
    b.store(updated[buffer], b.argument(1 + buffer), begin);
  return b.getKernel();
}
