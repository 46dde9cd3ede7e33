//===- Build.cpp - exec-build ---------------------------------------------===//

#include "compiler/Exec/FunctionBuilder.h"
#include "compiler/Exec/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace fsdpq {
#define GEN_PASS_DEF_EXECBUILD
#include "compiler/Exec/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct BuildPass : fsdpq::impl::ExecBuildBase<BuildPass> {
  void runOnOperation() override {
    SmallVector<tfm::ArchitectureOp> architectures(
        getOperation().getOps<tfm::ArchitectureOp>());
    for (tfm::ArchitectureOp architecture : architectures)
      if (failed(build(architecture)))
        return signalPassFailure();
  }

private:
  LogicalResult build(tfm::ArchitectureOp architecture) {
    OpBuilder builder(architecture);
    auto plan = exec::PlanOp::create(builder, architecture.getLoc(),
                                     architecture.getSymName());
    plan.getBody().emplaceBlock();
    if (Attribute config = architecture->getAttr("config"))
      plan->setAttr("config", config);
    Storage storage(architecture, plan);

    // Functions that chunk loops call are part of their callers.
    llvm::StringSet<> bodies;
    architecture.walk([&](tfm::ChunkLoopOp loop) { bodies.insert(loop.getBody()); });
    builder.setInsertionPointToEnd(&plan.getBody().front());
    for (auto kernel : llvm::make_early_inc_range(
             architecture.getBody().getOps<kern::FuncOp>()))
      kernel->moveBefore(&plan.getBody().front(), plan.getBody().front().end());
    for (auto function : architecture.getBody().getOps<tfm::FuncOp>()) {
      if (bodies.contains(function.getSymName()))
        continue;
      builder.setInsertionPointToEnd(&plan.getBody().front());
      StringRef name = function.getSymName();
      int64_t indexCount = getIndexCount(storage, function);
      auto target = exec::FuncOp::create(builder, function.getLoc(), name, indexCount);
      target.getBody().emplaceBlock();
      if (failed(FunctionBuilder(storage, function, target).build()))
        return failure();
    }
    storage.declare();
    declareScalars(plan);
    architecture.erase();
    return success();
  }

  /// Load functions take the number of a piece or the ordinal of a layer.
  static int64_t getIndexCount(const Storage &storage, tfm::FuncOp function) {
    int64_t count = 0;
    function.walk([&](Operation *op) {
      if (auto part = dyn_cast<fsdp::PartOp>(op))
        count = std::max(count, (int64_t)part.getPieces());
      if (auto scratch = dyn_cast<fsdp::ScratchOp>(op))
        count = std::max(count, (int64_t)scratch.getPieces());
      if (auto store = dyn_cast<fsdp::StoreOp>(op))
        count = Storage::countLayers(storage.getUnit(store.getUnit()));
    });
    return count;
  }

  /// The scalars that instructions name, integers with the largest value that
  /// their extents allow for.
  void declareScalars(exec::PlanOp plan) {
    llvm::MapVector<StringRef, std::optional<int64_t>> scalars;
    auto record = [&](kern::ExtentAttr extent) {
      if (extent.getScalar().empty())
        return;
      // Ports and rows have mul = div = 1 and a cap that is the capacity.
      if (extent.getMul() == 1 && extent.getDiv() == 1 && !extent.getIndexMul()) {
        auto &max = scalars[extent.getScalar()];
        max = std::max<int64_t>(max.value_or(0), extent.getCap());
      } else if (!scalars.count(extent.getScalar())) {
        scalars[extent.getScalar()] = 0;
      }
    };
    plan.walk([&](Operation *op) {
      for (NamedAttribute attribute : op->getAttrs())
        attribute.getValue().walk([&](kern::ExtentAttr extent) { record(extent); });
      if (auto launch = dyn_cast<exec::LaunchOp>(op))
        for (auto name : launch.getScalars().getAsRange<StringAttr>())
          scalars.insert({name.getValue(), std::nullopt});
    });
    OpBuilder builder = OpBuilder::atBlockBegin(&plan.getBody().front());
    for (auto [name, max] : scalars)
      exec::ScalarOp::create(builder, plan.getLoc(), builder.getStringAttr(name),
                             max ? builder.getI64IntegerAttr(*max)
                                 : IntegerAttr());
  }
};
} // namespace
