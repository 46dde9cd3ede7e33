//===- SetPrecision.cpp - tfm-set-precision -------------------------------===//
//
// Functions are rewritten from the programs down: what a stack or a chunk loop
// passes on gives the argument types of its bodies, and each operation infers its
// result types from its operands'. So statistics and losses come out in the type
// in which they are summed without being named here.
//
//===----------------------------------------------------------------------===//

#include "compiler/Analysis/Activity.h"
#include "compiler/Grad/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "llvm/ADT/TypeSwitch.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMSETPRECISION
#include "compiler/Grad/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static void setElement(Value value, Type element) {
  value.setType(typeOf(value).clone(element));
}

namespace {
class PrecisionSetter {
public:
  PrecisionSetter(tfm::ArchitectureOp architecture, Type storage)
      : architecture(architecture), storage(storage) {}

  LogicalResult run() {
    for (auto param : architecture.getBody().getOps<tfm::ParamOp>())
      setParam(param);
    // Layers and bodies of loops follow from what calls them.
    for (auto function : architecture.getBody().getOps<tfm::FuncOp>())
      if (!isChunkBody(function) && failed(rewrite(function)))
        return failure();
    return success();
  }

  int64_t getNumCasts() const { return numCasts; }

private:
  void setParam(tfm::ParamOp param) {
    RankedTensorType type = param.getTensorType();
    if (qt::isQuantized(type.getElementType()))
      param.setRounded(storage);
    else if (type.getElementType().isF32() && !param.getTrainable())
      param.setType(type.clone(storage));
  }

  bool isChunkBody(tfm::FuncOp function) {
    return architecture
        .walk([&](tfm::ChunkLoopOp loop) {
          return loop.getBody() == function.getSymName()
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Rewrites a layer or the body of a loop for the arguments it is given.
  template <typename FunctionT>
  LogicalResult rewriteCallee(Operation *caller, FunctionT callee,
                              ValueRange arguments) {
    for (auto [argument, given] :
         llvm::zip(callee.getBody().getArguments(), arguments)) {
      Type element = typeOf(given).getElementType();
      if (done.contains(callee) && typeOf(argument).getElementType() != element)
        return caller->emitError("[FSDPQ-0161] gives ")
               << given.getType() << " to @" << callee.getSymName()
               << ", which another operation gives " << argument.getType();
      setElement(argument, element);
    }
    return rewrite(callee);
  }

  template <typename FunctionT>
  LogicalResult rewrite(FunctionT function) {
    if (!done.insert(function).second)
      return success();
    Block &body = function.getBody().front();
    for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
      if (failed(rewrite(&op)))
        return failure();
    function.setFunctionType(FunctionType::get(
        function.getContext(), llvm::to_vector(body.getArgumentTypes()),
        llvm::to_vector(body.getTerminator()->getOperandTypes())));
    return success();
  }

  LogicalResult rewrite(Operation *op) {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](tfm::UseOp use) { return rewriteUse(use); })
        .Case([&](tfm::StackOp stack) { return rewriteStack(stack); })
        .Case([&](tfm::ChunkLoopOp loop) { return rewriteLoop(loop); })
        .Case([&](tfm::EmitOp emit) {
          // Outputs are arrays of f32 for the host.
          if (typeOf(emit.getValue()).getElementType() == storage)
            emit.getValueMutable().assign(
                makeCast(emit.getValue(), Float32Type::get(op->getContext()),
                         emit));
          return success();
        })
        .Case([&](InferTypeOpInterface inferred) { return infer(inferred); })
        .Default([](Operation *) { return success(); });
  }

  LogicalResult rewriteUse(tfm::UseOp use) {
    RankedTensorType type = typeOf(use.getResult());
    if (!type.getElementType().isF32())
      return success();
    if (!isTrainable(use)) {
      for (auto symbol : use.getParams().getAsRange<SymbolRefAttr>())
        if (auto param =
                SymbolTable::lookupNearestSymbolFrom<tfm::ParamOp>(use, symbol);
            param && param.getTrainable())
          return use.emitError("[FSDPQ-0160] joins the trained ")
                 << symbol << " with frozen parameters, which are stored in "
                 << storage;
      setElement(use.getResult(), storage);
      return success();
    }
    Value cast = makeCast(use.getResult(), storage, use->getNextNode());
    use.getResult().replaceAllUsesExcept(cast, cast.getDefiningOp());
    return success();
  }

  Value makeCast(Value value, Type element, Operation *before) {
    OpBuilder builder(before);
    ++numCasts;
    return tfm::CastOp::create(builder, value.getLoc(),
                               typeOf(value).clone(element), value);
  }

  LogicalResult rewriteStack(tfm::StackOp stack) {
    SmallVector<Value> arguments = {stack.getX()};
    llvm::append_range(arguments, stack.getShared());
    for (auto symbol : stack.getKinds().getAsRange<SymbolRefAttr>()) {
      auto layer =
          SymbolTable::lookupNearestSymbolFrom<tfm::LayerOp>(stack, symbol);
      if (failed(rewriteCallee(stack, layer, arguments)))
        return failure();
    }
    setElement(stack.getY(), typeOf(stack.getX()).getElementType());
    return success();
  }

  LogicalResult rewriteLoop(tfm::ChunkLoopOp loop) {
    auto body = SymbolTable::lookupNearestSymbolFrom<tfm::FuncOp>(
        loop, loop.getBodyAttr());
    if (failed(rewriteCallee(loop, body, loop.getOperands())))
      return failure();
    for (auto [result, type] : llvm::zip(loop.getResults(), body.getResultTypes()))
      setElement(result, cast<RankedTensorType>(type).getElementType());
    return success();
  }

  LogicalResult infer(InferTypeOpInterface op) {
    SmallVector<Type> types;
    if (failed(op.inferReturnTypes(
            op->getContext(), op->getLoc(), op->getOperands(),
            op->getAttrDictionary(), op->getPropertiesStorage(),
            op->getRegions(), types)))
      return failure();
    for (auto [result, type] : llvm::zip(op->getResults(), types))
      setElement(result, cast<RankedTensorType>(type).getElementType());
    return success();
  }

  tfm::ArchitectureOp architecture;
  Type storage;
  llvm::SmallPtrSet<Operation *, 8> done;
  int64_t numCasts = 0;
};

struct SetPrecisionPass : fsdpq::impl::TfmSetPrecisionBase<SetPrecisionPass> {
  using TfmSetPrecisionBase::TfmSetPrecisionBase;

  void runOnOperation() override {
    if (storage == "f32")
      return;
    if (storage != "bf16") {
      getOperation().emitError("[FSDPQ-0162] storage = '")
          << storage << "'; known: f32, bf16";
      return signalPassFailure();
    }
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>()) {
      PrecisionSetter setter(architecture, BFloat16Type::get(&getContext()));
      if (failed(setter.run()))
        return signalPassFailure();
      numCasts += setter.getNumCasts();
    }
  }
};
} // namespace
