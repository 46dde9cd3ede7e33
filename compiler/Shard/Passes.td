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
    follow each other.

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
  let options = [Option<"ranks", "ranks", "int64_t", "1", "Ranks of the mesh">];
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
    In every function and layer: each unit that is used is gathered at the
    start and released at the end, `tfm.use` becomes a view of it, and after a
    body that adds to the gradient of a trainable unit the gradient is reduced.

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
  let statistics = [
    Statistic<"numGathers", "gathers", "Gathers inserted">,
    Statistic<"numReductions", "reductions", "Reductions inserted">,
  ];
}

def FsdpFoldTrivialCollectives : ShardPass<"fsdp-fold-trivial-collectives"> {
  let summary = "Remove collectives from a mesh of one rank";
  let description = [{
    Where the only rank's range is the whole unit, a gather and its wait become
    `fsdp.local`, and releases and reductions go. On any larger mesh the pass
    changes nothing.

    Input, on a mesh of one:
    ```mlir
    %p = fsdp.all_gather_start @u
    %g = fsdp.wait %p
    fsdp.release %g
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
