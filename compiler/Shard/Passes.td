//===- Passes.td - The shard phase: where and when ------------------------===//

#ifndef FSDPQ_SHARD_PASSES_TD
#define FSDPQ_SHARD_PASSES_TD

include "mlir/Pass/PassBase.td"

class ShardPass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::fsdpq::tfm::TfmDialect", "::fsdpq::qt::QTDialect",
                           "::fsdpq::fsdp::FsdpDialect"];
}

def FsdpFormUnits : ShardPass<"fsdp-form-units"> {
  let summary = "Group parameters into units";
  let description = [{
    Declares the mesh and puts every parameter into one unit: per-layer
    parameters by the layers that use them, others by the functions that do,
    trainable ones apart from frozen ones. Parameters that one `tfm.use` joins
    follow each other. With `split`, frozen parameters that a layer uses only
    after its first residual sum make a unit apart from those before it.

    Input:
    ```mlir
    tfm.param @q per_layer : tensor<64x64xf32> {hf = "q.{layer}"}
    tfm.param @a per_layer : tensor<8x64xf32> {hf = "a.{layer}", trainable}
    ```
    Output, for two layers:
    ```mlir
    fsdp.mesh @mesh ranks = 1
    fsdp.unit @layers.base [@q] layers = [0, 1]
    fsdp.unit @layers.trained [@a] layers = [0, 1] {trainable}
    ```
  }];
  let options = [
    Option<"ranks", "ranks", "int64_t", "1", "Ranks of the mesh">,
    Option<"shards", "shards", "int64_t", "0",
           "Ranges that units are cut into; 0: one a rank">,
    Option<"deterministic", "deterministic", "bool", "false",
           "Results do not depend on the number of ranks">,
    Option<"split", "split", "bool", "false",
           "Attention and MLP of a layer are units of their own">,
  ];
  let statistics = [Statistic<"numUnits", "units", "Units formed">];
}

def FsdpAssignLayout : ShardPass<"fsdp-assign-layout"> {
  let summary = "Place parameters in their units' flat buffers";
  let description = [{
    Sets the byte range of every stored array (quantised codes, scales, offsets,
    plain values) and the size of each unit, a multiple of 256 bytes a rank.
    Ranges start at multiples of 64 bytes except inside a group of parameters
    that are used as one.

    Input:
    ```mlir
    fsdp.unit @u [@q, @k]
    ```
    Output:
    ```mlir
    fsdp.unit @u [@q, @k] {bytes = 24576 : i64, parts = [
      #fsdp.part<@q, "data", offset = 0, bytes = 16384>,
      #fsdp.part<@k, "data", offset = 16384, bytes = 8192>]}
    ```
  }];
}

def FsdpInsertCollectives : ShardPass<"fsdp-insert-collectives"> {
  let summary = "Gather units where they are used, reduce their gradients";
  let description = [{
    In every function and layer: each unit is gathered before its first use and
    released after its last, between two stacks apart from what lies beyond
    them; `tfm.use` becomes a view of it. Weights that the body of a chunk loop
    uses are gathered once, outside the loop. Gathers start where they are
    needed; exec-schedule-overlap lets them start earlier.

    With `reduce=micro_step`, what a body adds to the gradient of a trainable
    unit goes to a gradient of its own, which is reduced after the last addition.
    With `reduce=step` it is added to what this rank has, and the optimizer step
    begins by reducing that.

    Input:
    ```mlir
    tfm.layer @k(%x: !x) -> !x {
      %w = tfm.use [@q] : !w
      %y = tfm.linear %x, %w : !x, !w
      tfm.return %y : !x
    }
    ```
    Output:
    ```mlir
    tfm.layer @k(%x: !x) -> !x {
      %p = fsdp.all_gather_start @layers.base
      %g = fsdp.wait %p
      %w = fsdp.view %g [@q] : !w
      %y = tfm.linear %x, %w : !x, !w
      fsdp.release %g
      tfm.return %y : !x
    }
    ```
  }];
  let options = [Option<"reduce", "reduce", "std::string", [{"micro_step"}],
                        "When gradients are reduced: micro_step or step">];
  let statistics = [
    Statistic<"numGathers", "gathers", "Gathers inserted">,
    Statistic<"numReductions", "reductions", "Reductions inserted">,
  ];
}

def FsdpKeepGathered : ShardPass<"fsdp-keep-gathered"> {
  let summary = "Keep gathered weights whole from the forward to the backward pass";
  let description = [{
    Layers get kinds of their own whose forward body keeps the frozen and trained
    units it gathered and whose backward body uses them without a gather: all
    layers (`all`), or as many, from the highest down, as `budget` bytes allow.

    Input:
    ```mlir
    tfm.layer @k(%x: !x) -> (!x, !x) {
      %p = fsdp.all_gather_start @layers.base
      %g = fsdp.wait %p
      ...
      fsdp.release %g
    }
    tfm.layer @k.backward(%dy: !x, %r: !x) -> !x {
      %p = fsdp.all_gather_start @layers.base
      %g = fsdp.wait %p
      ...
    ```
    Output, beside these:
    ```mlir
    tfm.layer @k.kept(%x: !x) -> (!x, !x) {
      %p = fsdp.all_gather_start @layers.base
      %g = fsdp.wait %p
      ...
      fsdp.keep %g
    }
    tfm.layer @k.backward.kept(%dy: !x, %r: !x) -> !x {
      %g = fsdp.kept @layers.base
      ...
    ```
  }];
  let options = [
    Option<"budget", "budget", "int64_t", "0", "Bytes that may be spent">,
    Option<"all", "all", "bool", "false", "Keep all layers, whatever it takes">,
  ];
  let statistics = [Statistic<"numKept", "kept", "Layers whose weights are kept">];
}

def FsdpFoldTrivialCollectives : ShardPass<"fsdp-fold-trivial-collectives"> {
  let summary = "Remove collectives where a rank's range is the whole unit";
  let description = [{
    On a mesh whose units are not cut, a gather and its wait become `fsdp.local`,
    releases go, and gradients are summed where they are kept. A deterministic
    mesh keeps its reductions, which are the order of the sum; sums over replicas
    stay always. On any other mesh the pass changes nothing.

    Input, on a mesh of one:
    ```mlir
    %p = fsdp.all_gather_start @u
    %g = fsdp.wait %p
    fsdp.release %g
    fsdp.gradient_start @t
    fsdp.reduce_scatter_start @t
    ```
    Output:
    ```mlir
    %g = fsdp.local @u
    ```
  }];
  let statistics = [Statistic<"numFolded", "folded", "Collectives removed">];
}

def FsdpVerifyResidency : ShardPass<"fsdp-verify-residency"> {
  let summary = "Check that parameters are whole wherever they are used";
  let description = [{
    After the shard phase no `tfm.use` is left, every gathered unit is released
    exactly once and no view of it is used after that, views lie in their units,
    and every unit has a layout. Reports every offender. Does not change the IR.
  }];
}

#endif // FSDPQ_SHARD_PASSES_TD
