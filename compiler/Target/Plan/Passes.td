//===- Passes.td - Writing the plan down ----------------------------------===//

#ifndef FSDPQ_TARGET_PLAN_PASSES_TD
#define FSDPQ_TARGET_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExecSerialize : Pass<"exec-serialize", "::mlir::ModuleOp"> {
  let summary = "Write the plan file";
  let description = [{
    Compiles the plan's kernels for this machine's CPU and writes the plan to
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
  ];
  let dependentDialects = ["::fsdpq::exec::ExecDialect"];
}

#endif // FSDPQ_TARGET_PLAN_PASSES_TD
