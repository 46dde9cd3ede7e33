//===- VerifyRaces.cpp - exec-verify-races --------------------------------===//

#include "compiler/Target/Plan/Passes.h"
#include "compiler/Target/Plan/Serialize.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/ScheduleCheck.h"

namespace fsdpq {
#define GEN_PASS_DEF_EXECVERIFYRACES
#include "compiler/Target/Plan/Passes.h.inc"
} // namespace fsdpq

using namespace mlir;
using namespace fsdpq;

namespace {
struct VerifyRacesPass : fsdpq::impl::ExecVerifyRacesBase<VerifyRacesPass> {
  void runOnOperation() override {
    getOperation().walk([&](exec::PlanOp plan) {
      std::vector<uint8_t> bytes = serializePlan(plan, {});
      const plan::Plan *written = plan::GetPlan(bytes.data() + rt::planHeaderBytes);
      for (const rt::ScheduleFault &fault : rt::checkSchedule(*written)) {
        plan.emitOpError("[FSDPQ-0591] ") << fault.message;
        signalPassFailure();
      }
    });
  }
};
} // namespace
