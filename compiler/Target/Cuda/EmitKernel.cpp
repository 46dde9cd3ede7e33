//===- EmitKernel.cpp - A prepared kernel's text --------------------------===//

#include "compiler/Target/Cuda/Emission.h"
#include "compiler/Target/Cuda/Families/Rows.h"
#include "compiler/Target/Cuda/Families/Skeletons.h"
#include "compiler/Target/Cuda/Families/Tiles.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

/// A kernel's name as an identifier of CUDA.
static std::string getSymbol(StringRef name) {
  std::string symbol;
  for (char c : name)
    symbol += llvm::isAlnum(c) ? c : '_';
  return llvm::isAlpha(symbol[0]) ? symbol : "kernel_" + symbol;
}

FailureOr<KernelText> cuda::emitKernel(kern::FuncOp kernel,
                                       const Architecture &architecture) {
  kern::EmissionAttr emission = kernel.getEmissionAttr();
  if (!emission)
    return kernel.emitOpError("[FSDPQ-0512] has no emission; run "
                              "kern-prepare-emission first");
  StringRef family = emission.getFamily();
  if (isSkeleton(family)) {
    if (auto text = emitSkeleton(kernel, family, architecture))
      return *text;
    return kernel.emitOpError("[FSDPQ-0513] is no kernel of the family '")
           << family << "'; run kern-prepare-emission again";
  }
  if (family != "rows" && family != "tiles")
    return kernel.emitOpError(
               "[FSDPQ-0513] has an emission of the unknown family '")
           << family << "'";
  OwningOpRef<ModuleOp> copy = generalize(kernel);
  std::string symbol = getSymbol(kernel.getSymName());
  Decline declined;
  auto text = family == "rows"
                  ? emitRows(getKernel(*copy), emission, symbol, declined)
                  : emitTiles(getKernel(*copy), emission, symbol, declined);
  if (failed(text))
    return mlir::emitError(declined.op->getLoc(), "[FSDPQ-0513] kernel @")
           << kernel.getSymName() << " is no kernel of the family '" << family
           << "': '" << declined.op->getName() << "' " << declined.reason;
  return text;
}
