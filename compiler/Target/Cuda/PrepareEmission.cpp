//===- PrepareEmission.cpp - kern-prepare-emission ------------------------===//
//
// A family says that it can emit a kernel by emitting it; its text is dropped
// here.
//
//===----------------------------------------------------------------------===//

#include "compiler/Target/Cuda/Emission.h"
#include "compiler/Target/Cuda/Families/Rows.h"
#include "compiler/Target/Cuda/Families/Skeletons.h"
#include "compiler/Target/Cuda/Families/Tiles.h"
#include "compiler/Target/Cuda/Passes.h"
#include "dialects/Support/Remarks.h"

namespace fsdpq::cuda {
#define GEN_PASS_DEF_KERNPREPAREEMISSION
#include "compiler/Target/Cuda/Passes.h.inc"
} // namespace fsdpq::cuda

using namespace mlir;
using namespace fsdpq;
using namespace fsdpq::cuda;

static LogicalResult setEmission(kern::FuncOp kernel,
                                 kern::EmissionAttr emission) {
  kernel.setEmissionAttr(emission);
  remarkPassed(kernel.getLoc(), RemarkId::Emission)
      << ("kernel @" + kernel.getSymName() + " is emitted by the family " +
          emission.getFamily())
             .str()
      << remark::metric("threads", emission.getThreads());
  return success();
}

static std::string describe(const Decline &declined) {
  return ("'" + declined.op->getName().getStringRef() + "' " + declined.reason)
      .str();
}

LogicalResult cuda::prepareEmission(kern::FuncOp kernel,
                                    const Architecture &architecture) {
  MLIRContext *context = kernel.getContext();
  kernel.removeEmissionAttr();
  std::string reason;
  if (auto name = chooseSkeleton(kernel, architecture, reason)) {
    if (auto text = emitSkeleton(kernel, *name, architecture)) {
      const LaunchShape &launch = text->launch;
      return setEmission(
          kernel, kern::EmissionAttr::get(context, *name, launch.threads,
                                          launch.threads, 1, launch.sharedBytes,
                                          launch.blocksPerProcessor));
    }
  }
  if (!reason.empty())
    remarkMissed(kernel.getLoc(), RemarkId::Emission)
        << ("kernel @" + kernel.getSymName() + " has no skeleton: " + reason).str();

  OwningOpRef<ModuleOp> copy = generalize(kernel);
  kern::FuncOp general = getKernel(*copy);
  Decline noRows, noTiles;
  auto rows = chooseRows(general, noRows);
  if (succeeded(rows) && succeeded(emitRows(general, *rows, "symbol", noRows)))
    return setEmission(kernel, *rows);
  auto tiles = chooseTiles(general, architecture, noTiles);
  if (succeeded(tiles) &&
      succeeded(emitTiles(general, *tiles, "symbol", noTiles)))
    return setEmission(kernel, *tiles);

  InFlightDiagnostic error =
      mlir::emitError(noTiles.op->getLoc(), "[FSDPQ-0510] kernel @")
      << kernel.getSymName()
      << " cannot be emitted for CUDA: " << describe(noTiles);
  error.attachNote(noRows.op->getLoc())
      << "with tiles in registers: " << describe(noRows);
  return error;
}

namespace {
struct PrepareEmissionPass
    : fsdpq::cuda::impl::KernPrepareEmissionBase<PrepareEmissionPass> {
  using KernPrepareEmissionBase::KernPrepareEmissionBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<linalg::LinalgDialect, memref::MemRefDialect,
                    scf::SCFDialect, tensor::TensorDialect>();
  }

  void runOnOperation() override {
    auto architecture = Architecture::parse(arch);
    if (!architecture) {
      getOperation()->emitError("[FSDPQ-0511] unknown GPU architecture '")
          << arch << "'; known: " << Architecture::knownNames();
      return signalPassFailure();
    }
    bool hasFailed = false;
    getOperation()->walk([&](kern::FuncOp kernel) {
      if (failed(prepareEmission(kernel, *architecture))) {
        hasFailed = true;
        return;
      }
      StringRef family = kernel.getEmissionAttr().getFamily();
      ++(isSkeleton(family) ? numSkeletons
         : family == "rows" ? numRows
                            : numTiles);
    });
    if (hasFailed)
      signalPassFailure();
  }
};
} // namespace
