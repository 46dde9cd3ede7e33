//===- Passes.td - The exec phase: which bytes, which order ---------------===//

#ifndef FSDPQ_EXEC_PASSES_TD
#define FSDPQ_EXEC_PASSES_TD

include "mlir/Pass/PassBase.td"

class ExecPass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::fsdpq::exec::ExecDialect", "::fsdpq::kern::KernDialect"];
}

def ExecBuild : ExecPass<"exec-build"> {
  let summary = "Make the plan";
  let description = [{
    Turns the architecture into an `exec.plan`: units get places in arenas,
    tensors become temporaries, stacks become loops over periodic runs of layer
    kinds whose slices move from layer to layer, and kernel calls become
    instructions. A value that is overwritten while still needed is copied first.

    Input:
    ```mlir
    %y = tfm.stack(%x) kinds = [@block] {layers = array<i32: 0, 0>} : !x -> !x
    ```
    Output:
    ```mlir
    %c = exec.alloc "carry" bytes = 2048
    exec.loop count = #kern.extent<add = 2, cap = 2> {
      %in = exec.subslice %c[0] bytes = 1024 {level = 1 : i64, table = array<i64: 0, 1024>}
      %out = exec.subslice %c[0] bytes = 1024 {level = 1 : i64, table = array<i64: 1024, 0>}
      exec.launch @k reads(%in) writes(%out) ...
    }
    ```
  }];
}

def ExecPlanMemory : ExecPass<"exec-plan-memory"> {
  let summary = "Give every temporary an address";
  let description = [{
    Lifetimes are intervals over the instructions of a function (a temporary
    that is used in a loop but made outside it lives through the whole loop).
    The largest are placed first, each at the lowest address that no temporary
    alive at the same time holds.

    Input:
    ```mlir
    %b = exec.alloc "q" bytes = 1024
    ```
    Output:
    ```mlir
    %b = exec.slice "q" of @activations[2048] bytes = 1024
    ```
  }];
  let statistics = [
    Statistic<"planned", "bytes", "Bytes of the arena of temporaries">,
  ];
}

def ExecVerifyMemory : ExecPass<"exec-verify-memory"> {
  let summary = "Check that no temporary is overwritten while needed";
  let description = [{
    Follows every function's instructions, loops unrolled, over a map of who
    wrote each byte of the arena of temporaries last: an instruction may read
    only what was written through the temporary it reads. Also checks that slices
    lie in their arenas. Does not change the IR.
  }];
}

#endif // FSDPQ_EXEC_PASSES_TD
