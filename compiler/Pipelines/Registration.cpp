#include "compiler/Pipelines/Registration.h"
#include "compiler/Model/Passes.h"
#include "dialects/QT/QT.h"
#include "dialects/Tfm/Tfm.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

void fsdpq::registerAllDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<qt::QTDialect, tfm::TfmDialect>();
}

void fsdpq::registerAllPasses() {
  registerFsdpqModelPasses();
}
