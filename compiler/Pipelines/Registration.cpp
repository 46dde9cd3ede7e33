#include "compiler/Pipelines/Registration.h"
#include "compiler/Fuse/Passes.h"
#include "compiler/Grad/Passes.h"
#include "compiler/Model/Passes.h"
#include "compiler/Shard/Passes.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

void fsdpq::registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<qt::QTDialect, tfm::TfmDialect, fsdp::FsdpDialect>();
}

void fsdpq::registerAllPasses() {
  registerFsdpqModelPasses();
  registerFsdpqGradPasses();
  registerFsdpqShardPasses();
  registerFsdpqFusePasses();
}
