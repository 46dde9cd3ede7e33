//===- Passes.td - Writing the plan down ----------------------------------===//

#ifndef FSDPQ_TARGET_PLAN_PASSES_TD
#define FSDPQ_TARGET_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExecSerialize : Pass<"exec-serialize", "::mlir::ModuleOp"> {
  let summary = "Write the plan file";
  let description = [{
    Compiles the plan's kernels for `target`, this machine's CPU or a GPU (of
    which they must be prepared by kern-prepare-emission), and writes the plan to
    `output`, which fsdpq-run takes by `--plan` and `fsdpq-translate
    --plan-to-text` prints. With `kernels = false` the plan holds no code: it can
    be looked at, not run. Does not change the IR.

    ```mlir
    exec.plan @llama {
      exec.arena @activations {bytes = 4096 : i64}
    }
    ```
  }];
  let options = [
    Option<"output", "output", "std::string", "", "The file to write">,
    Option<"kernels", "kernels", "bool", "true", "Compile kernels into it">,
    Option<"target", "target", "std::string", "\"cpu\"",
           "cpu, or a GPU as NVRTC names it (sm_90a)">,
  ];
  let dependentDialects = ["::fsdpq::exec::ExecDialect"];
}

def ExecVerifyRaces : Pass<"exec-verify-races", "::mlir::ModuleOp"> {
  let summary = "Check that streams do not touch the same bytes unordered";
  let description = [{
    Checks the plan as it would be written down, every function's instructions
    with loops unrolled: accesses of different streams to the same bytes, one of
    them a write, must be ordered by events; whoever reads a unit's parameters
    must find there what the gather of that unit and layer brought; collectives
    must come in the same order on all ranks; and streams must be waited for at
    the end. The checks are those of runtime/plan/ScheduleCheck.h, which
    `fsdpq-translate --check-schedule` applies to plan files. Does not change the
    IR.

    ```mlir
    exec.plan @llama {
      exec.arena @activations {bytes = 4096 : i64}
    }
    ```
  }];
  let dependentDialects = ["::fsdpq::exec::ExecDialect"];
}

def ExecReportOverlap : Pass<"exec-report-overlap", "::mlir::ModuleOp"> {
  let summary = "Say of each collective how much of it is hidden";
  let description = [{
    Simulates every function on the machine that the file `hardware` describes
    (see runtime/plan/Hardware.h and tools/hardware) and gives a remark for each
    collective: passed where computation hides it, missed where it keeps
    computation waiting, with the times of all its calls in one call of the
    function. Does not change the IR.

    ```mlir
    exec.plan @llama {
      exec.arena @activations {bytes = 4096 : i64}
    }
    ```
  }];
  let options = [Option<"hardware", "hardware", "std::string", "",
                        "The description of the machine">];
  let dependentDialects = ["::fsdpq::exec::ExecDialect"];
}

#endif // FSDPQ_TARGET_PLAN_PASSES_TD
