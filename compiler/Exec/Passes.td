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

def ExecScheduleOverlap : ExecPass<"exec-schedule-overlap"> {
  let summary = "Start gathers ahead of their need";
  let description = [{
    With `depth` 1, gathers start when those before them have come: straight
    after the wait for them. In a loop, the gathers that an iteration needs first
    start in the iteration before; those of the first iteration come before the
    loop, and the last iteration, which starts none, after it. From there they
    move on upwards, so that the border between a stack and what surrounds it is
    no special case. At most two gathered units of a kind are then alive, which is
    what exec-build made room for.

    Input:
    ```mlir
    exec.loop count = #kern.extent<add = 4, cap = 4> {
      exec.all_gather %shard to %slot bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
      exec.wait 0 stream = 0
      exec.launch @layer ...
    }
    ```
    Output:
    ```mlir
    exec.all_gather %shard_of_0 to %slot_of_0 ... stream = 1
    exec.loop count = #kern.extent<add = 3, cap = 3> {
      exec.wait 0 stream = 0
      exec.all_gather %shard_of_next to %slot_of_next ... stream = 1
      exec.launch @layer ...
    }
    exec.wait 0 stream = 0
    exec.launch @layer ...
    ```
  }];
  let options = [Option<"depth", "depth", "int64_t", "1",
                        "How many gathers start ahead: 0 or 1">];
  let statistics = [
    Statistic<"numHoisted", "hoisted", "Gathers moved ahead">,
    Statistic<"numRotated", "rotated", "Loops whose gathers start an iteration ahead">,
  ];
}

def ExecInsertEvents : ExecPass<"exec-insert-events"> {
  let summary = "Order streams by events";
  let description = [{
    A collective starts after all computation that stands before it: an event is
    recorded on the stream that computes, and the collective's stream waits for
    it. When it is done it records its own event, for which exec-build put waits
    where its result is needed; of collectives that follow each other and are
    waited for together, only the last does. Program order is then an order that all streams
    keep, which is why exec-plan-memory may reason about it.

    Input:
    ```mlir
    exec.all_gather %s to %w bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
    ```
    Output:
    ```mlir
    exec.record 1 stream = 0
    exec.wait 1 stream = 1
    exec.all_gather %s to %w bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
    exec.record 0 stream = 1
    ```
  }];
  let statistics = [Statistic<"numEvents", "records", "Records inserted">];
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
