#include "compiler/Fuse/JoinLinears.h"
#include "dialects/Tfm/Tfm.h"

#include <optional>

using namespace mlir;
using namespace fsdpq;

namespace {
/// A linear layer, with or without adapter.
struct LinearLike {
  Operation *op;
  Value x, w, a, b; ///< a and b are null without adapter
  double scale = 0;
  tfm::DropoutAttr mask;
};
} // namespace

static std::optional<LinearLike> matchLinear(Value output) {
  if (auto linear = output.getDefiningOp<tfm::LinearOp>())
    return LinearLike{linear, linear.getX(), linear.getW(), {}, {}};
  if (auto lora = output.getDefiningOp<tfm::LoraLinearOp>())
    if (output == lora.getY() && lora.getU().use_empty() &&
        lora.getParts().size() == 1)
      return LinearLike{lora,        lora.getX(), lora.getW(), lora.getA(),
                        lora.getB(), lora.getScale().convertToDouble(),
                        lora.getMaskAttr()};
  return std::nullopt;
}

/// Whether `values` are parameters that can be one: nothing is made before all
/// of a fusion is known to succeed.
static LogicalResult checkUses(ArrayRef<Value> values, Operation *anchor,
                               PatternRewriter &rewriter) {
  if (values.empty())
    return success();
  auto first = cast<RankedTensorType>(values.front().getType());
  for (Value value : values) {
    auto use = value.getDefiningOp<tfm::UseOp>();
    auto type = cast<RankedTensorType>(value.getType());
    if (!use)
      return rewriter.notifyMatchFailure(anchor, "a factor is no parameter");
    if (!type.hasStaticShape() ||
        type.getShape().drop_front() != first.getShape().drop_front() ||
        type.getElementType() != first.getElementType())
      return rewriter.notifyMatchFailure(anchor, "factors differ in type");
  }
  return success();
}

/// One `tfm.use` of all parameters behind `values`.
static Value joinUses(ArrayRef<Value> values, Operation *anchor,
                      PatternRewriter &rewriter) {
  SmallVector<Attribute> params;
  int64_t rows = 0;
  auto first = cast<RankedTensorType>(values.front().getType());
  for (Value value : values) {
    llvm::append_range(params, value.getDefiningOp<tfm::UseOp>().getParams());
    rows += cast<RankedTensorType>(value.getType()).getDimSize(0);
  }
  SmallVector<int64_t> shape(first.getShape());
  shape.front() = rows;
  return tfm::UseOp::create(rewriter, anchor->getLoc(),
                            RankedTensorType::get(shape, first.getElementType()),
                            rewriter.getArrayAttr(params));
}

FailureOr<Value> fsdpq::joinLinears(ArrayRef<Value> outputs, Operation *anchor,
                                    PatternRewriter &rewriter) {
  SmallVector<Value> weights, as, bs;
  SmallVector<int64_t> parts;
  SmallVector<bool> adapted;
  std::optional<double> scale;
  tfm::DropoutAttr mask;
  Value x;
  Operation *last = nullptr;
  for (Value output : outputs) {
    std::optional<LinearLike> linear = matchLinear(output);
    if (!linear)
      return rewriter.notifyMatchFailure(anchor, "an operand is no linear layer");
    if (!output.hasOneUse())
      return rewriter.notifyMatchFailure(anchor, "a product has a second use");
    if (x && x != linear->x)
      return rewriter.notifyMatchFailure(anchor, "products of different values");
    x = linear->x;
    if (linear->op->getBlock() != anchor->getBlock())
      return rewriter.notifyMatchFailure(anchor, "a product of another block");
    if (!last || last->isBeforeInBlock(linear->op))
      last = linear->op;
    weights.push_back(linear->w);
    parts.push_back(cast<RankedTensorType>(output.getType()).getDimSize(1));
    adapted.push_back(linear->a != nullptr);
    if (!linear->a)
      continue;
    if (scale && *scale != linear->scale)
      return rewriter.notifyMatchFailure(anchor, "adapters of different scale");
    if (scale && mask != linear->mask)
      return rewriter.notifyMatchFailure(anchor, "adapters drop differently");
    scale = linear->scale;
    mask = linear->mask;
    as.push_back(linear->a);
    bs.push_back(linear->b);
  }
  for (Value a : as)
    if (a.getType() != as.front().getType())
      return rewriter.notifyMatchFailure(anchor, "adapters of different rank");

  if (failed(checkUses(weights, anchor, rewriter)) ||
      failed(checkUses(as, anchor, rewriter)) ||
      failed(checkUses(bs, anchor, rewriter)))
    return failure();

  rewriter.setInsertionPointAfter(last);
  Value weight = joinUses(weights, anchor, rewriter);
  Location loc = last->getLoc();
  if (as.empty())
    return Value(tfm::LinearOp::create(rewriter, loc, x, weight));
  Value a = joinUses(as, anchor, rewriter);
  Value b = joinUses(bs, anchor, rewriter);
  return Value(tfm::LoraLinearOp::create(
                   rewriter, loc, x, weight, a, b,
                   rewriter.getF64FloatAttr(*scale),
                   rewriter.getDenseI64ArrayAttr(parts),
                   rewriter.getDenseBoolArrayAttr(adapted), mask)
                   .getY());
}
