//===- CountLinears.cpp - A pass outside of fsdpq -------------------------===//
//
// What a researcher's own pass looks like: built apart, loaded by fsdpq-opt with
// --load-pass-plugin=libCountLinears.so and run with
// --pass-pipeline="builtin.module(count-linears)".
//
//===----------------------------------------------------------------------===//

#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {
struct CountLinears : PassWrapper<CountLinears, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountLinears)

  StringRef getArgument() const override { return "count-linears"; }
  StringRef getDescription() const override {
    return "Remark how many linear layers each layer kind has";
  }
  void runOnOperation() override {
    getOperation().walk([](fsdpq::tfm::LayerOp layer) {
      int64_t count = 0;
      layer.walk([&](fsdpq::tfm::LinearOp) { ++count; });
      layer.emitRemark() << "@" << layer.getSymName() << " has " << count
                         << " linear layers";
    });
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK ::mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "CountLinears", "1",
          [] { PassRegistration<CountLinears>(); }};
}
