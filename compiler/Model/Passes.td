//===- Passes.td - The model phase: what is trained -----------------------===//

#ifndef FSDPQ_MODEL_PASSES_TD
#define FSDPQ_MODEL_PASSES_TD

include "mlir/Pass/PassBase.td"

class ModelPass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::fsdpq::tfm::TfmDialect", "::fsdpq::qt::QTDialect"];
}

def TfmBindConfig : ModelPass<"tfm-bind-config"> {
  let summary = "Replace symbolic sizes and values by a checkpoint's";
  let description = [{
    Reads a Hugging Face `config.json` or the metadata of a GGUF file (as a JSON
    object, with the shapes of all tensors under `tensors`), evaluates the
    `config` entries of the architecture that serves it, and replaces sizes in
    every type and every `#tfm.config`. Other architectures in the module are
    removed. The sizes T and R stay run-time values with capacity `tokens`, both.
    Tied parameters become one. Stacks get their `layers`.

    Input:
    ```mlir
    tfm.param @norm : tensor<?xf32, #tfm.dims<"D">> {hf = "model.norm.weight"}
    %x = tfm.embedding %ids, %w : tensor<?xi32, #tfm.dims<"T">>, tensor<?x?xf32, #tfm.dims<"V", "D">>
    ```
    Output:
    ```mlir
    tfm.param @norm : tensor<64xf32> {hf = "model.norm.weight"}
    %x = tfm.embedding %ids, %w : tensor<512xi32, #tfm.dims<"T">>, tensor<384x64xf32>
    ```
  }];
  let options = [
    Option<"config", "config", "std::string", "", "Path of the configuration (JSON)">,
    Option<"configText", "config-text", "std::string", "", "The configuration itself, instead of a path">,
    Option<"gguf", "gguf", "bool", "false", "The configuration is GGUF metadata">,
    Option<"tokens", "tokens", "int64_t", "512", "Tokens of a micro-batch at most; a multiple of 128">,
  ];
}

def TfmBuildPrograms : ModelPass<"tfm-build-programs"> {
  let summary = "Make the programs that run from @trunk and @head";
  let description = [{
    Adds the functions named in `programs` to the architecture and removes
    `@trunk` and `@head`:

    | program | what it does |
    |---|---|
    | `micro_step` | the loss of a micro-batch's labelled rows; tfm-autodiff adds its gradient |
    | `eval_step` | the same loss alone |
    | `logits` | the logits of one row, `last_row` |

    Labelled rows are gathered before the head; the head runs inside a
    `tfm.chunk_loop` of one chunk, which tfm-chunk-loss cuts.

    Input:
    ```mlir
    tfm.func @trunk(%ids, %positions, %segments) -> !x { ... }
    tfm.func @head(%x: !x) -> !logits { ... }
    ```
    Output:
    ```mlir
    tfm.func @eval_step.head(%x: !rx, %targets: !rows) { ... tfm.report_loss ... }
    tfm.func @eval_step(%ids, %positions, %segments, %rows, %targets, %index) {
      ...
      %r = tfm.gather_rows %y, %rows, %index : !x, !rows, !ids
      tfm.chunk_loop(%r, %targets) body = @eval_step.head chunk = 512 : !rx, !rows
      tfm.return
    }
    ```
  }];
  let options = [
    ListOption<"programs", "programs", "std::string", "Programs to make">,
  ];
}

def TfmInsertAdapters : ModelPass<"tfm-insert-adapters"> {
  let summary = "Add low-rank adapters to linear layers";
  let description = [{
    Gives every `tfm.linear` inside a layer whose parameter's module name is a
    target two trainable parameters A (rank x in, Kaiming uniform) and B (out x
    rank, zeros), named as PEFT names them. tfm-fuse-lora joins what is inserted
    into one operation. `targets` is `all` (q, k, v, gate, up, down: without
    o_proj, as the reference has it), `all-linear`, `default` (q, v) or module
    names. A target that matches nothing is an error. With `dropout` adapters read
    `tfm.dropout` of their input; those of one input share it (PEFT draws for
    each).

    Input:
    ```mlir
    %q = tfm.linear %x, %w : !x, !q
    ```
    Output:
    ```mlir
    %q0 = tfm.linear %x, %w : !x, !q
    %a = tfm.use [@q_proj.lora_A] : !a
    %b = tfm.use [@q_proj.lora_B] : !b
    %u = tfm.linear %x, %a : !x, !a
    %v = tfm.linear %u, %b : !u, !b
    %s = tfm.scale %v {factor = 2.0} : !q
    %q = tfm.add %q0, %s : !q, !q
    ```
  }];
  let options = [
    Option<"rank", "rank", "int64_t", "8", "Rank of the adapters">,
    Option<"scale", "scale", "double", "1.0", "Factor of the adapter's output (alpha / rank)">,
    Option<"dropout", "dropout", "double", "0.0", "Rate at which inputs of adapters are dropped">,
    ListOption<"targets", "targets", "std::string", "all, all-linear, default, or module names">,
  ];
  let statistics = [Statistic<"numAdapters", "adapters", "Adapters added">];
}

def TfmQuantizeParams : ModelPass<"tfm-quantize-params"> {
  let summary = "Store the weights of linear layers in a quantised type";
  let description = [{
    Changes the element type of every per-layer parameter used as the weight of a
    `tfm.linear` (adapters excepted) to `scheme`. Embeddings, norms and the head
    keep theirs, as in the reference. Changes numerics.

    Input:
    ```mlir
    tfm.param @q_proj per_layer : tensor<64x64xf32> {hf = "..."}
    ```
    Output, with scheme "!qt.nf4<block = 64, scale = dq<256>>":
    ```mlir
    tfm.param @q_proj per_layer : tensor<64x64x!qt.nf4<block = 64, scale = dq<256>>> {hf = "..."}
    ```
  }];
  let options = [
    Option<"scheme", "scheme", "std::string", "\"!qt.nf4<block = 64, scale = dq<256>>\"", "A qt type">,
  ];
  let statistics = [Statistic<"numQuantized", "quantized", "Parameters quantised">];
}

def TfmFreeze : ModelPass<"tfm-freeze"> {
  let summary = "Choose what is trained";
  let description = [{
    `train = "all"` marks every parameter trainable and refuses quantised ones;
    `train = "adapters"` marks those that have an `init`, and no other.

    ```mlir
    tfm.param @norm : tensor<64xf32> {hf = "model.norm.weight"}             // input
    tfm.param @norm : tensor<64xf32> {hf = "model.norm.weight", trainable}  // output
    ```
  }];
  let options = [
    Option<"train", "train", "std::string", "\"all\"", "all or adapters">,
  ];
}

def TfmMergeKinds : ModelPass<"tfm-merge-kinds"> {
  let summary = "Join layer kinds with equal bodies";
  let description = [{
    Two kinds of a stack are one when their bodies are the same operations on
    the same parameters. Compile time and kernel count grow with kinds, so this
    runs after passes that clone them.

    Input:
    ```mlir
    %y = tfm.stack(%x) kinds = [@a, @b] {layers = array<i32: 0, 1, 0>} : !x -> !x
    ```
    Output, when @a and @b are equal:
    ```mlir
    %y = tfm.stack(%x) kinds = [@a] {layers = array<i32: 0, 0, 0>} : !x -> !x
    ```
  }];
  let statistics = [Statistic<"numMerged", "merged", "Kinds removed">];
}

def TfmVerifyModel : ModelPass<"tfm-verify-model"> {
  let summary = "Check that the model phase is complete";
  let description = [{
    One architecture; no unbound size or `#tfm.config`; every parameter used in a
    layer is per-layer exactly if the function using it is a layer's; quantised
    parameters are frozen. Reports every offender. Does not change the IR.
  }];
}

#endif // FSDPQ_MODEL_PASSES_TD
