//===- fsdpq-opt.cpp - IR in, IR out --------------------------------------===//
//
// Every pass and pipeline of fsdpq, upstream's passes, plugins and remarks.
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/Registration.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::registerAllPasses();
  fsdpq::registerAllPasses();
  mlir::DialectRegistry registry;
  fsdpq::registerAllDialects(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "fsdpq compiler driver\n", registry));
}
