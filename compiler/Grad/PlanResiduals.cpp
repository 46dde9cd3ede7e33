//===- PlanResiduals.cpp - tfm-plan-residuals -----------------------------===//

#include "compiler/Grad/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Support/Remarks.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/IRMapping.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMPLANRESIDUALS
#include "compiler/Grad/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

/// Erases what has no effect and no use, from the end of `body`.
static void eraseDeadOps(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Makes `forward` keep its input alone and `backward` recompute the rest.
static void recomputeBlock(tfm::LayerOp forward, tfm::LayerOp backward) {
  Block &source = forward.getBody().front();
  Block &target = backward.getBody().front();
  Operation *result = source.getTerminator();
  unsigned residuals = result->getNumOperands() - 1;
  unsigned shared = source.getNumArguments() - 1;

  // The backward pass reads parameters at its start; what is recomputed uses the
  // same values, so that a quantised weight is dequantised once.
  // Copies of parameters in another type follow the reads.
  Operation *start = &target.front();
  llvm::DenseMap<Attribute, Value> uses;
  for (; auto use = dyn_cast<tfm::UseOp>(start); start = start->getNextNode())
    uses[use.getParams()] = use.getResult();
  llvm::DenseMap<std::pair<Value, Type>, Value> casts;
  for (; auto cast = dyn_cast<tfm::CastOp>(start); start = start->getNextNode())
    casts[{cast.getX(), cast.getY().getType()}] = cast.getY();
  OpBuilder builder(start);
  IRMapping mapping;
  // After dy comes the layer's input; the old residual arguments follow until
  // they are replaced.
  mapping.map(source.getArgument(0),
              target.insertArgument(1, source.getArgument(0).getType(),
                                    source.getArgument(0).getLoc()));
  for (unsigned i = 0; i < shared; ++i)
    mapping.map(source.getArgument(1 + i),
                target.getArgument(2 + residuals + i));
  for (Operation &op : source.without_terminator()) {
    Value known;
    if (auto use = dyn_cast<tfm::UseOp>(op))
      known = uses.lookup(use.getParams());
    else if (auto cast = dyn_cast<tfm::CastOp>(op))
      known = casts.lookup(
          {mapping.lookup(cast.getX()), cast.getY().getType()});
    if (known)
      mapping.map(op.getResult(0), known);
    else
      builder.clone(op, mapping);
  }
  for (unsigned i = 0; i < residuals; ++i)
    target.getArgument(2 + i).replaceAllUsesWith(
        mapping.lookup(result->getOperand(1 + i)));
  target.eraseArguments(2, residuals);

  result->setOperands({result->getOperand(0), source.getArgument(0)});
  Type carried = source.getArgument(0).getType();
  forward.setFunctionType(builder.getFunctionType(
      llvm::to_vector(source.getArgumentTypes()), {carried, carried}));
  backward.setFunctionType(builder.getFunctionType(
      llvm::to_vector(target.getArgumentTypes()), carried));
  eraseDeadOps(target);
}

/// Whether `value` is the main result of an operation that costs no more than
/// reading its operands and writing its results. What else it gives is small.
static bool isCheap(Value value) {
  Operation *op = value.getDefiningOp();
  return op && value == op->getResult(0) &&
         isa<tfm::RmsNormOp, tfm::GatedSiluOp, tfm::CastOp, tfm::SiluOp, tfm::AddOp,
             tfm::MulOp, tfm::ScaleOp, tfm::DropoutOp>(op);
}

namespace {
/// Makes the backward pass of one layer recompute the residuals that are cheap
/// functions of others.
class CheapRecomputation {
public:
  CheapRecomputation(tfm::LayerOp forward, tfm::LayerOp backward)
      : forward(forward), backward(backward),
        result(forward.getBody().front().getTerminator()) {
    for (auto [i, value] : llvm::enumerate(result->getOperands().drop_front()))
      numbers.try_emplace(value, i);
  }

  void run() {
    llvm::BitVector dropped(result->getNumOperands() - 1);
    for (auto [value, i] : numbers)
      if (isRecomputable(value))
        dropped.set(i);
    for (unsigned i : dropped.set_bits())
      recompute(i);
    eraseResiduals(dropped);
  }

private:
  Block &target() { return backward.getBody().front(); }
  BlockArgument getSaved(unsigned i) { return target().getArgument(1 + i); }

  /// Whether `value` can be had again in the backward pass without products.
  bool isRecomputable(Value value) {
    return isCheap(value) &&
           llvm::all_of(value.getDefiningOp()->getOperands(), [&](Value input) {
             return input.getDefiningOp<tfm::UseOp>() || numbers.contains(input) ||
                    isRecomputable(input);
           });
  }

  /// `value` of the forward pass, for an operation at the builder's place.
  Value materialize(OpBuilder &builder, Value value) {
    Operation *op = value.getDefiningOp();
    if (numbers.contains(value) && !isRecomputable(value))
      return getSaved(numbers.lookup(value));
    if (auto use = dyn_cast<tfm::UseOp>(op))
      for (auto known : target().getOps<tfm::UseOp>())
        if (known.getParams() == use.getParams() &&
            known->isBeforeInBlock(&*builder.getInsertionPoint()))
          return known.getResult();
    IRMapping mapping;
    for (Value input : op->getOperands())
      mapping.map(input, materialize(builder, input));
    builder.clone(*op, mapping);
    return mapping.lookup(value);
  }

  /// Just before the first operation that needs it: until then it takes no memory.
  void recompute(unsigned i) {
    BlockArgument saved = getSaved(i);
    Operation *first = nullptr;
    for (Operation *user : saved.getUsers())
      if (!first || user->isBeforeInBlock(first))
        first = user;
    if (!first)
      return;
    OpBuilder builder(first);
    saved.replaceAllUsesWith(
        materialize(builder, result->getOperand(1 + i)));
  }

  void eraseResiduals(const llvm::BitVector &dropped) {
    llvm::BitVector operands(result->getNumOperands()),
        arguments(target().getNumArguments());
    for (unsigned i : dropped.set_bits()) {
      operands.set(1 + i);
      arguments.set(1 + i);
    }
    result->eraseOperands(operands);
    target().eraseArguments(arguments);
    OpBuilder builder(forward.getContext());
    forward.setFunctionType(builder.getFunctionType(
        forward.getArgumentTypes(), llvm::to_vector(result->getOperandTypes())));
    backward.setFunctionType(builder.getFunctionType(
        llvm::to_vector(target().getArgumentTypes()), backward.getResultTypes()));
  }

  tfm::LayerOp forward, backward;
  Operation *result;
  llvm::MapVector<Value, unsigned> numbers; ///< of what forward saves
};

struct PlanResidualsPass
    : fsdpq::impl::TfmPlanResidualsBase<PlanResidualsPass> {
  using TfmPlanResidualsBase::TfmPlanResidualsBase;

  void runOnOperation() override {
    if (mode == "none") {
      getOperation().walk([&](tfm::StackGradOp grad) { reportKept(grad); });
      return;
    }
    if (mode != "block" && mode != "cheap") {
      getOperation().emitError("[FSDPQ-0210] mode = '")
          << mode << "'; known: none, cheap, block";
      return signalPassFailure();
    }
    llvm::SmallPtrSet<Operation *, 4> done;
    getOperation().walk([&](tfm::StackGradOp grad) {
      auto stack = grad.getSaved().getDefiningOp<tfm::StackOp>();
      for (auto [forwardName, backwardName] :
           llvm::zip(stack.getKinds().getAsRange<SymbolRefAttr>(),
                     grad.getKinds().getAsRange<SymbolRefAttr>())) {
        auto forward =
            SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(stack, forwardName);
        auto backward =
            SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(grad, backwardName);
        if (!done.insert(forward).second)
          continue;
        int64_t before = getResidualBytes(forward);
        if (mode == "cheap")
          CheapRecomputation(forward, backward).run();
        else
          recomputeBlock(forward, backward);
        remarkPassed(forward.getLoc(), RemarkId::Recompute)
            << ("@" + forward.getSymName() + " keeps " +
                formatBytes(getResidualBytes(forward)) + " a layer instead of " +
                formatBytes(before))
                   .str()
            << remark::metric("bytes", getResidualBytes(forward));
      }
    });
  }

private:
  static int64_t getResidualBytes(tfm::LayerOp forward) {
    int64_t bytes = 0;
    for (Type type : forward.getResultTypes().drop_front()) {
      auto tensor = cast<RankedTensorType>(type);
      bytes += tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8;
    }
    return bytes;
  }

  static void reportKept(tfm::StackGradOp grad) {
    auto stack = grad.getSaved().getDefiningOp<tfm::StackOp>();
    for (auto symbol : stack.getKinds().getAsRange<SymbolRefAttr>()) {
      auto forward =
          SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(stack, symbol);
      remarkAnalysis(forward.getLoc(), RemarkId::KeepResiduals)
          << ("@" + forward.getSymName() + " keeps " +
              formatBytes(getResidualBytes(forward)) + " a layer")
                 .str()
          << remark::metric("bytes", getResidualBytes(forward));
    }
  }
};
} // namespace
