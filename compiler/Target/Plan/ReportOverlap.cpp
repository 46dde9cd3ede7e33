//===- ReportOverlap.cpp - exec-report-overlap ----------------------------===//

#include "compiler/Target/Plan/Passes.h"
#include "compiler/Target/Plan/Serialize.h"
#include "dialects/Support/Remarks.h"
#include "runtime/plan/Estimate.h"
#include "runtime/plan/PlanFile.h"

#include "llvm/Support/Format.h"

namespace fsdpq {
#define GEN_PASS_DEF_EXECREPORTOVERLAP
#include "compiler/Target/Plan/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

static std::string formatTime(double seconds) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (seconds < 1e-3)
    os << llvm::format("%.1f us", seconds * 1e6);
  else
    os << llvm::format("%.2f ms", seconds * 1e3);
  return text;
}

/// The instructions of a function by their numbers: in text order, a loop before
/// its body.
static void numberInstructions(Block &block, SmallVectorImpl<Operation *> &all) {
  for (Operation &op : block) {
    if (!isa<exec::SliceOp, exec::SubsliceOp, exec::AllocOp>(op))
      all.push_back(&op);
    if (auto loop = dyn_cast<exec::LoopOp>(op))
      numberInstructions(loop.getBody().front(), all);
  }
}

namespace {
struct ReportOverlapPass : fsdpq::impl::ExecReportOverlapBase<ReportOverlapPass> {
  using ExecReportOverlapBase::ExecReportOverlapBase;

  void runOnOperation() override {
    if (hardware.empty()) {
      getOperation().emitError("[FSDPQ-0604] exec-report-overlap needs the "
                               "description of a machine: hardware=FILE");
      return signalPassFailure();
    }
    getOperation().walk([&](exec::PlanOp plan) {
      std::vector<uint8_t> bytes = serializePlan(plan, {});
      rt::PlanEstimate estimate = rt::estimateFunctions(
          *plan::GetPlan(bytes.data() + rt::planHeaderBytes), hardware);
      if (!estimate.error.empty()) {
        plan.emitError("[FSDPQ-0603] ") << estimate.error;
        return signalPassFailure();
      }
      // Loading has nothing to hide behind.
      for (auto [function, result] :
           llvm::zip(plan.getBody().getOps<exec::FuncOp>(), estimate.functions))
        if (!function.getSymName().starts_with("load."))
          report(function, result);
    });
  }

private:
  void report(exec::FuncOp function, const rt::FunctionEstimate &estimate) {
    SmallVector<Operation *> instructions;
    numberInstructions(function.getBody().front(), instructions);
    for (const rt::SiteEstimate &site : estimate.sites) {
      Location loc = instructions[site.instruction]->getLoc();
      std::string text = site.name + ": " + formatTime(site.hidden()) +
                         " hidden, " + formatTime(site.exposed) + " exposed";
      // Of what is exposed by less than a thousandth there is nothing to gain.
      if (site.exposed * 1000 < site.seconds)
        remarkPassed(loc, RemarkId::Overlap)
            << text << remark::metric("calls", site.calls);
      else
        remarkMissed(loc, RemarkId::Overlap)
            << text << remark::metric("calls", site.calls);
    }
  }
};
} // namespace
