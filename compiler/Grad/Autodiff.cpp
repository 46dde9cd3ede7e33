//===- Autodiff.cpp - tfm-autodiff ----------------------------------------===//
//
// Reverse-mode differentiation of a straight-line function, one rule an
// operation. Two places leave the straight line: a stack, whose kinds are split
// into forward and backward kinds, and the head's chunk loop, whose body gets
// its backward pass appended.
//
//===----------------------------------------------------------------------===//

#include "compiler/Analysis/Activity.h"
#include "compiler/Grad/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <functional>

namespace fsdpq {
#define GEN_PASS_DEF_TFMAUTODIFF
#include "compiler/Grad/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
/// Gradients of the values of one block while its backward pass is built.
class BlockGradients {
public:
  /// How the backward pass sees a forward value.
  using SavedFn = llvm::function_ref<Value(Value)>;

  BlockGradients(const Activity &activity, OpBuilder &builder, SavedFn saved)
      : activity(activity), builder(builder), savedValue(saved) {}

  Value lookup(Value value) const { return gradients.lookup(value); }

  void add(Value value, Value gradient) {
    if (!activity.isActive(value))
      return;
    Value &sum = gradients[value];
    sum = sum ? Value(tfm::AddOp::create(builder, gradient.getLoc(), sum, gradient))
              : gradient;
  }

  /// Applies the rule of an operation.
  void differentiate(tfm::DifferentiableOpInterface op);

  /// The end of a gradient's way: the parameter's own.
  void accumulate(tfm::UseOp use) {
    if (Value gradient = lookup(use.getResult()))
      tfm::AccumulateOp::create(builder, use.getLoc(), use.getParams(), gradient);
  }

private:
  friend class RuleBuilder;
  const Activity &activity;
  OpBuilder &builder;
  SavedFn savedValue;
  llvm::DenseMap<Value, Value> gradients;
};

/// What the rule of one operation sees.
class RuleBuilder final : public tfm::GradientBuilder {
public:
  RuleBuilder(BlockGradients &block, Operation *op)
      : GradientBuilder(block.builder, op->getLoc()), block(block), op(op) {}

  Value resultGradient(unsigned result) override {
    return block.lookup(op->getResult(result));
  }
  bool needs(unsigned operand) override {
    return block.activity.isActive(op->getOperand(operand));
  }
  Value saved(Value forward) override { return block.savedValue(forward); }
  void add(unsigned operand, Value gradient) override {
    block.add(op->getOperand(operand), gradient);
  }

private:
  BlockGradients &block;
  Operation *op;
};
} // namespace

void BlockGradients::differentiate(tfm::DifferentiableOpInterface op) {
  RuleBuilder rule(*this, op);
  op.buildGradient(rule);
}

namespace {
struct AutodiffPass : fsdpq::impl::TfmAutodiffBase<AutodiffPass> {
  void runOnOperation() override {
    kinds.clear();
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      auto step = architecture.lookupSymbol<tfm::FuncOp>("micro_step");
      if (step && failed(differentiateProgram(step)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult differentiateProgram(tfm::FuncOp function);
  std::pair<tfm::LayerOp, tfm::LayerOp> differentiateLayer(tfm::LayerOp layer);
  tfm::StackOp saveResiduals(tfm::StackOp stack);
  LogicalResult differentiateLoop(tfm::ChunkLoopOp loop, const Activity &activity,
                                  BlockGradients &gradients);

  /// Forward and backward kinds, by the kind they come from.
  llvm::DenseMap<Operation *, std::pair<tfm::LayerOp, tfm::LayerOp>> kinds;
};
} // namespace

LogicalResult AutodiffPass::differentiateProgram(tfm::FuncOp function) {
  Block &body = function.getBody().front();
  Activity activity(body, {});
  OpBuilder builder(body.getTerminator());
  BlockGradients gradients(activity, builder, [](Value value) { return value; });
  SmallVector<Operation *> forward;
  for (Operation &op : body.without_terminator())
    forward.push_back(&op);
  for (Operation *op : llvm::reverse(forward)) {
    if (auto use = dyn_cast<tfm::UseOp>(op)) {
      gradients.accumulate(use);
    } else if (auto stack = dyn_cast<tfm::StackOp>(op)) {
      Value dy = gradients.lookup(stack.getY());
      if (!dy)
        continue;
      tfm::StackOp saving = saveResiduals(stack);
      SmallVector<Attribute> backward;
      for (auto symbol : stack.getKinds().getAsRange<SymbolRefAttr>())
        backward.push_back(FlatSymbolRefAttr::get(
            kinds[SymbolTable::lookupNearestSymbolFrom(stack, symbol)].second));
      auto grad = tfm::StackGradOp::create(
          builder, stack.getLoc(), stack.getX().getType(), dy, saving.getSaved(),
          stack.getShared(), builder.getArrayAttr(backward),
          stack.getLayersAttr());
      gradients.add(stack.getX(), grad.getDx());
      stack.getY().replaceAllUsesWith(saving.getY());
      stack.erase();
    } else if (auto loop = dyn_cast<tfm::ChunkLoopOp>(op)) {
      if (failed(differentiateLoop(loop, activity, gradients)))
        return failure();
    } else if (auto differentiable = dyn_cast<tfm::DifferentiableOpInterface>(op)) {
      if (activity.isActive(op))
        gradients.differentiate(differentiable);
    }
  }
  return success();
}

/// The stack beside `stack` that also returns residuals.
tfm::StackOp AutodiffPass::saveResiduals(tfm::StackOp stack) {
  SmallVector<Attribute> forward;
  for (auto symbol : stack.getKinds().getAsRange<SymbolRefAttr>()) {
    auto layer = SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(stack, symbol);
    auto &pair = kinds[layer];
    if (!pair.first)
      pair = differentiateLayer(layer);
    forward.push_back(FlatSymbolRefAttr::get(pair.first));
  }
  OpBuilder builder(stack);
  return tfm::StackOp::create(
      builder, stack.getLoc(), stack.getY().getType(),
      tfm::SavedType::get(&getContext()), stack.getX(), stack.getShared(),
      builder.getArrayAttr(forward), stack.getLayersAttr(), /*depth=*/Attribute(),
      /*map=*/Attribute(), /*types=*/ArrayAttr());
}

std::pair<tfm::LayerOp, tfm::LayerOp>
AutodiffPass::differentiateLayer(tfm::LayerOp layer) {
  OpBuilder builder(&getContext());
  builder.setInsertionPointAfter(layer);
  auto forward = cast<tfm::LayerOp>(builder.clone(*layer));
  forward.setSymName((layer.getSymName() + ".forward").str());
  Block &body = forward.getBody().front();
  auto shared = body.getArguments().drop_front();
  Type carried = body.getArgument(0).getType();

  // The backward body starts with (dy, shared...); residuals come in between as
  // rules ask for them.
  SmallVector<Type> arguments{carried};
  for (BlockArgument argument : shared)
    arguments.push_back(argument.getType());
  auto backward = tfm::LayerOp::create(
      builder, layer.getLoc(), (layer.getSymName() + ".backward").str(),
      builder.getFunctionType(arguments, carried));
  Block &backwardBody = backward.getBody().front();
  builder.setInsertionPointToStart(&backwardBody);

  IRMapping seen;
  for (auto [from, to] :
       llvm::zip(shared, backwardBody.getArguments().drop_front()))
    seen.map(from, to);
  llvm::SetVector<Value> residuals;
  std::function<Value(Value)> saved = [&](Value value) -> Value {
    if (Value known = seen.lookupOrNull(value))
      return known;
    if (auto use = value.getDefiningOp<tfm::UseOp>()) {
      // A parameter is read again, not saved. All of a layer's reads stand at
      // its start, where the gather that feeds them will be.
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&backwardBody);
      builder.clone(*use, seen);
      return seen.lookup(value);
    }
    if (auto cast = value.getDefiningOp<tfm::CastOp>();
        cast && cast.getX().getDefiningOp<tfm::UseOp>()) {
      // Likewise its copy in another type, made after the reads.
      saved(cast.getX());
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(
          &backwardBody,
          llvm::find_if_not(backwardBody, llvm::IsaPred<tfm::UseOp>));
      builder.clone(*cast, seen);
      return seen.lookup(value);
    }
    residuals.insert(value);
    BlockArgument argument = backwardBody.insertArgument(
        residuals.size(), value.getType(), value.getLoc());
    seen.map(value, argument);
    return argument;
  };

  Activity activity(body, body.getArgument(0));
  BlockGradients gradients(activity, builder, saved);
  gradients.add(body.getTerminator()->getOperand(0), backwardBody.getArgument(0));
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (auto use = dyn_cast<tfm::UseOp>(op))
      gradients.accumulate(use);
    else if (auto rule = dyn_cast<tfm::DifferentiableOpInterface>(op))
      if (activity.isActive(&op))
        gradients.differentiate(rule);
  }
  tfm::ReturnOp::create(builder, layer.getLoc(),
                        gradients.lookup(body.getArgument(0)));
  backward.setFunctionType(builder.getFunctionType(
      llvm::to_vector(backwardBody.getArgumentTypes()), carried));

  body.getTerminator()->insertOperands(1, residuals.getArrayRef());
  SmallVector<Type> results{carried};
  for (Value value : residuals)
    results.push_back(value.getType());
  forward.setFunctionType(builder.getFunctionType(
      llvm::to_vector(body.getArgumentTypes()), results));
  numResiduals += residuals.size();
  return {forward, backward};
}

LogicalResult AutodiffPass::differentiateLoop(tfm::ChunkLoopOp loop,
                                              const Activity &outer,
                                              BlockGradients &gradients) {
  for (Value value : loop.getShared())
    if (outer.isActive(value))
      return loop.emitError("[FSDPQ-0201] the gradient of a value that all "
                            "chunks share is not supported");
  auto body = SymbolTable::lookupNearestSymbolFrom<tfm::FuncOp>(
      loop, loop.getBodyAttr());
  OpBuilder builder(&getContext());
  builder.setInsertionPointAfter(body);
  auto joint = cast<tfm::FuncOp>(builder.clone(*body));
  joint.setSymName((body.getSymName() + ".backward").str());
  Block &block = joint.getBody().front();

  SmallVector<BlockArgument> activeArguments;
  for (auto [operand, argument] :
       llvm::zip(loop.getOperands(), block.getArguments()))
    if (outer.isActive(operand))
      activeArguments.push_back(argument);
  Activity activity(block, activeArguments);
  builder.setInsertionPoint(block.getTerminator());
  BlockGradients chunk(activity, builder, [](Value value) { return value; });
  SmallVector<Operation *> forward;
  for (Operation &op : block.without_terminator())
    forward.push_back(&op);
  for (Operation *op : llvm::reverse(forward)) {
    if (auto use = dyn_cast<tfm::UseOp>(op))
      chunk.accumulate(use);
    else if (auto rule = dyn_cast<tfm::DifferentiableOpInterface>(op))
      if (activity.isActive(op))
        chunk.differentiate(rule);
  }

  SmallVector<Value> results;
  SmallVector<Type> loopTypes;
  SmallVector<Value> receivers;
  for (BlockArgument argument : activeArguments) {
    Value gradient = chunk.lookup(argument);
    if (!gradient)
      continue;
    results.push_back(gradient);
    receivers.push_back(loop.getOperand(argument.getArgNumber()));
    loopTypes.push_back(receivers.back().getType());
  }
  block.getTerminator()->setOperands(results);
  joint.setFunctionType(builder.getFunctionType(
      joint.getArgumentTypes(), llvm::to_vector(ValueRange(results).getTypes())));

  builder.setInsertionPoint(loop);
  auto differentiated = tfm::ChunkLoopOp::create(
      builder, loop.getLoc(), loopTypes, loop.getSliced(), loop.getShared(),
      FlatSymbolRefAttr::get(joint), loop.getChunkAttr());
  for (auto [receiver, gradient] :
       llvm::zip(receivers, differentiated.getResults()))
    gradients.add(receiver, gradient);
  loop.erase();
  if (SymbolTable::symbolKnownUseEmpty(body, body->getParentOp()))
    body.erase();
  return success();
}
