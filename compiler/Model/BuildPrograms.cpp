//===- BuildPrograms.cpp - tfm-build-programs -----------------------------===//

#include "compiler/Model/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

namespace fsdpq {
#define GEN_PASS_DEF_TFMBUILDPROGRAMS
#include "compiler/Model/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

/// `type` with its rows (the size named T) replaced.
static Type withRows(Type type, int64_t rows, StringRef name) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  SmallVector<StringRef> names;
  for (int64_t dim = 0; dim < tensor.getRank(); ++dim) {
    bool isRows = tfm::getDimName(tensor, dim) == tfm::tokensDim;
    names.push_back(isRows ? name : tfm::getDimName(tensor, dim));
    if (isRows)
      shape[dim] = rows;
  }
  return tfm::getNamedType(type.getContext(), shape, names,
                           tensor.getElementType());
}

/// Copies the body of `function` to the insertion point with `arguments` in
/// place of its own; its rows become (`rows`, `name`). Gives what it returns.
static SmallVector<Value> inlineBody(OpBuilder &builder, tfm::FuncOp function,
                                     ValueRange arguments, int64_t rows,
                                     StringRef name) {
  IRMapping mapping;
  mapping.map(function.getBody().getArguments(), arguments);
  for (Operation &op : function.getBody().front().without_terminator()) {
    Operation *copy = builder.clone(op, mapping);
    for (OpResult result : copy->getResults())
      result.setType(withRows(result.getType(), rows, name));
  }
  return llvm::map_to_vector(function.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookup(value); });
}

/// Capacity for labelled rows: that of tokens, rounded so that the loss can be
/// cut into even chunks.
static int64_t getLabelCapacity(int64_t tokens) {
  constexpr int64_t granule = 512;
  return tokens <= granule ? tokens : llvm::alignTo(tokens, granule);
}

namespace {
struct BuildProgramsPass
    : fsdpq::impl::TfmBuildProgramsBase<BuildProgramsPass> {
  using TfmBuildProgramsBase::TfmBuildProgramsBase;

  void runOnOperation() override {
    for (auto architecture : getOperation().getOps<tfm::ArchitectureOp>())
      if (failed(build(architecture)))
        return signalPassFailure();
  }

private:
  LogicalResult build(tfm::ArchitectureOp architecture) {
    auto trunk = architecture.lookupSymbol<tfm::FuncOp>("trunk");
    auto head = architecture.lookupSymbol<tfm::FuncOp>("head");
    if (!trunk || !head || trunk.getArgumentTypes().size() != 3 ||
        trunk.getResultTypes().size() != 1 ||
        head.getArgumentTypes().size() != 1 ||
        head.getResultTypes().size() != 1)
      return architecture.emitError(
          "[FSDPQ-0120] an architecture needs @trunk(ids, positions, segments) "
          "and @head(rows), each with one result");
    for (StringRef program : programs) {
      if (program == "logits")
        buildLogits(architecture, trunk, head);
      else if (program == "micro_step" || program == "eval_step")
        buildLoss(architecture, trunk, head, program);
      else
        return architecture.emitError("[FSDPQ-0121] unknown program '")
               << program << "'; known: micro_step, eval_step, logits";
    }
    trunk.erase();
    head.erase();
    return success();
  }

  void buildLoss(tfm::ArchitectureOp architecture, tfm::FuncOp trunk,
                 tfm::FuncOp head, StringRef name) {
    MLIRContext *context = &getContext();
    OpBuilder builder = OpBuilder::atBlockEnd(&architecture.getBody().front());
    Location loc = trunk.getLoc();
    Type ids = trunk.getArgumentTypes().front();
    int64_t capacity = cast<RankedTensorType>(ids).getDimSize(0);
    int64_t labels = getLabelCapacity(capacity);
    Type rows = withRows(ids, labels, tfm::labelsDim);
    Type chunkRows = withRows(ids, labels, tfm::chunkDim);
    Type chunkX =
        withRows(head.getArgumentTypes().front(), labels, tfm::chunkDim);

    auto body = tfm::FuncOp::create(
        builder, loc, (name + ".head").str(),
        builder.getFunctionType({chunkX, chunkRows}, {}));
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&body.getBody().front());
      Value logits = inlineBody(builder, head, body.getBody().getArgument(0),
                                labels, tfm::chunkDim)
                         .front();
      auto loss = tfm::CrossEntropyOp::create(builder, head.getLoc(), logits,
                                              body.getBody().getArgument(1));
      tfm::ReportLossOp::create(builder, head.getLoc(), loss.getLoss(),
                                "loss_weight");
      tfm::ReturnOp::create(builder, head.getLoc(), ValueRange());
    }

    SmallVector<Type> arguments(trunk.getArgumentTypes());
    arguments.append({rows, rows, ids});
    auto function = tfm::FuncOp::create(builder, loc, name,
                                        builder.getFunctionType(arguments, {}));
    builder.setInsertionPointToStart(&function.getBody().front());
    auto values = function.getBody().getArguments();
    setPortNames(function, {"ids", "positions", "segments", "label_rows",
                            "label_targets", "label_index"});
    Value y = inlineBody(builder, trunk, values.take_front(3), capacity,
                         tfm::tokensDim)
                  .front();
    Value chosen =
        tfm::GatherRowsOp::create(builder, loc, y, values[3], values[5]);
    tfm::ChunkLoopOp::create(
        builder, loc, TypeRange(), ValueRange{chosen, values[4]}, ValueRange(),
        FlatSymbolRefAttr::get(context, body.getSymName()),
        builder.getI64IntegerAttr(labels));
    tfm::ReturnOp::create(builder, loc, ValueRange());
  }

  void buildLogits(tfm::ArchitectureOp architecture, tfm::FuncOp trunk,
                   tfm::FuncOp head) {
    OpBuilder builder = OpBuilder::atBlockEnd(&architecture.getBody().front());
    Location loc = trunk.getLoc();
    Type ids = trunk.getArgumentTypes().front();
    int64_t capacity = cast<RankedTensorType>(ids).getDimSize(0);
    SmallVector<Type> arguments(trunk.getArgumentTypes());
    arguments.append({withRows(ids, 1, ""), ids});
    auto function = tfm::FuncOp::create(builder, loc, "logits",
                                        builder.getFunctionType(arguments, {}));
    builder.setInsertionPointToStart(&function.getBody().front());
    auto values = function.getBody().getArguments();
    setPortNames(function,
                 {"ids", "positions", "segments", "last_row", "label_index"});
    Value y = inlineBody(builder, trunk, values.take_front(3), capacity,
                         tfm::tokensDim)
                  .front();
    Value last =
        tfm::GatherRowsOp::create(builder, loc, y, values[3], values[4]);
    Value logits = inlineBody(builder, head, last, 1, "").front();
    tfm::EmitOp::create(builder, loc, "logits", logits);
    tfm::ReturnOp::create(builder, loc, ValueRange());
  }

  /// Which array of the step block the host fills for each argument.
  static void setPortNames(tfm::FuncOp function, ArrayRef<StringRef> names) {
    for (auto [index, name] : llvm::enumerate(names))
      function.setArgAttr(index, "tfm.port",
                          StringAttr::get(function.getContext(), name));
  }
};
} // namespace
