//===- Passes.td - The grad phase: how gradients come about ---------------===//

#ifndef FSDPQ_GRAD_PASSES_TD
#define FSDPQ_GRAD_PASSES_TD

include "mlir/Pass/PassBase.td"

class GradPass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::fsdpq::tfm::TfmDialect", "::fsdpq::qt::QTDialect"];
}

def TfmSetPrecision : GradPass<"tfm-set-precision"> {
  let summary = "Store activations and frozen weights in bf16";
  let description = [{
    With `storage = "bf16"` activations and frozen parameters become bf16; products
    and sums stay in f32, and so do row statistics, losses and rotary tables. A
    trainable parameter stays f32, and where it is used a `tfm.cast` makes the bf16
    copy; its gradient is f32. Quantised parameters are rounded to bf16 before they
    are quantised. What a program emits is f32. Changes numerics.

    Runs after what chooses the trained parameters and what joins parameters, and
    before tfm-autodiff: the backward pass comes out in the same types.
    `storage = "f32"` changes nothing.

    Input:
    ```mlir
    tfm.param @w : tensor<64x64xf32> {hf = "w.weight"}
    tfm.param @a : tensor<8x64xf32> {init = "kaiming_uniform", trainable}
    %y = tfm.linear %x, %w0 : tensor<4x64xf32>, tensor<64x64xf32>
    %u = tfm.linear %x, %a0 : tensor<4x64xf32>, tensor<8x64xf32>
    ```
    Output:
    ```mlir
    tfm.param @w : tensor<64x64xbf16> {hf = "w.weight"}
    tfm.param @a : tensor<8x64xf32> {init = "kaiming_uniform", trainable}
    %a1 = tfm.cast %a0 : tensor<8x64xf32> -> tensor<8x64xbf16>
    %y = tfm.linear %x, %w0 : tensor<4x64xbf16>, tensor<64x64xbf16>
    %u = tfm.linear %x, %a1 : tensor<4x64xbf16>, tensor<8x64xbf16>
    ```
  }];
  let options = [
    Option<"storage", "storage", "std::string", "\"bf16\"", "f32 or bf16">,
  ];
  let statistics = [Statistic<"numCasts", "casts", "Casts inserted">];
}

def TfmCheckDifferentiable : GradPass<"tfm-check-differentiable"> {
  let summary = "Report every operation that has no derivative rule";
  let description = [{
    Every operation that trainable parameters reach, in `@micro_step` and the
    layers and functions it runs, must implement `DifferentiableOpInterface`.
    All offenders are reported at once. Does not change the IR.
  }];
}

def TfmAutodiff : GradPass<"tfm-autodiff"> {
  let summary = "Derive the backward pass";
  let description = [{
    Turns `@micro_step` from the loss into the loss and its gradient. Each layer
    kind K of its stack gives a forward kind `K.forward`, which also returns what
    the backward pass needs, and a backward kind `K.backward`; `tfm.stack_grad`
    runs these. The head's chunk loop gets a body that computes loss and gradient
    of a chunk together. Frozen weights get no gradient, and inactive values none
    either.

    Input:
    ```mlir
    tfm.layer @k(%x: !x) -> !x {
      %w = tfm.use [@w] : !w
      %y = tfm.linear %x, %w : !x, !w
      tfm.return %y : !x
    }
    ```
    Output, with @w trainable:
    ```mlir
    tfm.layer @k.forward(%x: !x) -> (!x, !x) {
      %w = tfm.use [@w] : !w
      %y = tfm.linear %x, %w : !x, !w
      tfm.return %y, %x : !x, !x
    }
    tfm.layer @k.backward(%dy: !x, %x: !x) -> !x {
      %w = tfm.use [@w] : !w
      %dx = tfm.matmul %dy, %w : !x, !w
      %dw = tfm.matmul %dy, %x {trans_a} : !x, !x
      tfm.accumulate [@w], %dw : !w
      tfm.return %dx : !x
    }
    ```
  }];
  let statistics = [
    Statistic<"numResiduals", "residuals", "Values kept by forward kinds">,
  ];
}

def TfmSkipDropout : GradPass<"tfm-skip-dropout"> {
  let summary = "Drop nothing but in training";
  let description = [{
    Removes dropout from all layers and functions that `@micro_step` does not run.
    Runs after tfm-autodiff, which has given training its own layers.

    Input:
    ```mlir
    tfm.layer @k(%x: !x) -> !x {
      %d = tfm.dropout %x {mask = #tfm.dropout<rate = 1.0e-01 : f64, site = 0>} : !x
      tfm.return %d : !x
    }
    ```
    Output:
    ```mlir
    tfm.layer @k(%x: !x) -> !x {
      tfm.return %x : !x
    }
    ```
  }];
  let statistics = [Statistic<"numSkipped", "skipped", "Dropouts removed">];
}

def TfmPlanResiduals : GradPass<"tfm-plan-residuals"> {
  let summary = "Choose between keeping and recomputing residuals";
  let description = [{
    `mode = "none"` keeps what the backward pass needs. `mode = "block"` keeps
    only each layer's input and recomputes the rest at the start of the backward
    kind, less whatever the backward pass does not use: the last projection of a
    layer is never recomputed. `mode = "cheap"` recomputes, where they are needed,
    normalised and gated activations and the like, which cost no more than reading
    and writing them, and keeps the rest.

    Input:
    ```mlir
    tfm.layer @k.forward(%x: !x) -> (!x, !h) { ... tfm.return %y, %h : !x, !h }
    tfm.layer @k.backward(%dy: !x, %h: !h) -> !x { ... }
    ```
    Output, with mode = "block":
    ```mlir
    tfm.layer @k.forward(%x: !x) -> (!x, !x) { ... tfm.return %y, %x : !x, !x }
    tfm.layer @k.backward(%dy: !x, %x: !x) -> !x { %h = ... }
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"none\"", "none, cheap or block">,
  ];
}

def TfmChunkLoss : GradPass<"tfm-chunk-loss"> {
  let summary = "Cut the head's loops into chunks";
  let description = [{
    Gives every `tfm.chunk_loop` chunks of at most `rows` rows, the most that
    divide the capacity, so that the logits of one chunk are alive at a time.

    Input, for a capacity of 4096 rows:
    ```mlir
    %d = tfm.chunk_loop(%r, %t) body = @head chunk = 4096 : (!rx, !rows) -> !rx
    ```
    Output, with rows = 1024:
    ```mlir
    %d = tfm.chunk_loop(%r, %t) body = @head chunk = 1024 : (!rx, !rows) -> !rx
    ```
  }];
  let options = [
    Option<"rows", "rows", "int64_t", "512", "Rows of a chunk; a multiple of 128">,
  ];
}

def TfmInsertOptimizer : GradPass<"tfm-insert-optimizer"> {
  let summary = "Add @optimizer_step";
  let description = [{
    Adds a function that updates every trainable parameter by `rule` (see
    tfm.optimizer_update). `options` are `name=value` numbers.

    Output:
    ```mlir
    tfm.func @optimizer_step() {
      %n = tfm.grad_norm [@a] : tensor<1xf32>
      tfm.optimizer_update [@a], %n rule = "sgd" options = {} : tensor<1xf32>
      tfm.return
    }
    ```
  }];
  let options = [
    Option<"rule", "rule", "std::string", "\"adamw\"", "adamw, adam, sgd or adadelta">,
    ListOption<"settings", "options", "std::string", "name=value numbers">,
  ];
}

def TfmVerifyGrad : GradPass<"tfm-verify-grad"> {
  let summary = "Check that the grad phase is complete";
  let description = [{
    Every trainable parameter gets a gradient and an update, no frozen one does,
    and the residuals of forward and backward kinds agree. Reports every
    offender. Does not change the IR.
  }];
}

#endif // FSDPQ_GRAD_PASSES_TD
