//===- Passes.td - Fusions of tfm operations ------------------------------===//
//
// The first four run before tfm-autodiff: what they make has a derivative rule
// of its own, so the backward pass comes out fused and units see which weights
// lie side by side. The others run after sharding.
//
//===----------------------------------------------------------------------===//

#ifndef FSDPQ_FUSE_PASSES_TD
#define FSDPQ_FUSE_PASSES_TD

include "mlir/Pass/PassBase.td"

class FusePass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::fsdpq::tfm::TfmDialect", "::fsdpq::qt::QTDialect"];
  let statistics = [Statistic<"numFused", "fused", "Operations made">];
}

def TfmFuseLora : FusePass<"tfm-fuse-lora"> {
  let summary = "Join a linear layer and its adapter";
  let description = [{
    Input:
    ```mlir
    %y0 = tfm.linear %x, %w : !x, !w
    %u = tfm.linear %x, %a : !x, !a
    %v = tfm.linear %u, %b : !u, !b
    %s = tfm.scale %v {factor = 2.0} : !y
    %y = tfm.add %y0, %s : !y, !y
    ```
    Output:
    ```mlir
    %y, %u = tfm.lora_linear %x, %w, %a, %b
      {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>} : !x, !w, !a, !b
    ```
    Not when the adapter reads another value than the layer, or an intermediate
    value has a second use.
  }];
}

def TfmFuseGated : FusePass<"tfm-fuse-gated"> {
  let summary = "Join an activation and its gate";
  let description = [{
    Input:
    ```mlir
    %a = tfm.silu %gate : !f
    %h = tfm.mul %a, %up : !f, !f
    ```
    Output:
    ```mlir
    %h = tfm.gated_silu %gate, %up : !f, !f
    ```
    Not when the activation has a second use.
  }];
}

def TfmFuseQkv : FusePass<"tfm-fuse-qkv"> {
  let summary = "One product for q, k and v";
  let description = [{
    Input:
    ```mlir
    %q0 = tfm.linear %x, %wq : !x, !wq
    %k0 = tfm.linear %x, %wk : !x, !wk
    %v = tfm.linear %x, %wv : !x, !wk
    %q = tfm.rope %q0, %rope {heads = 4 : i64} : !q, !rope
    %k = tfm.rope %k0, %rope {heads = 2 : i64} : !k, !rope
    %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!q, !k, !k), !ids
    ```
    Output:
    ```mlir
    %w = tfm.use [@q, @k, @v] : !wqkv
    %qkv0 = tfm.linear %x, %w : !x, !wqkv
    %qkv = tfm.rope %qkv0, %rope {heads = 6 : i64} : !qkv, !rope
    %o, %lse = tfm.attention(%qkv) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!qkv), !ids
    ```
    Adapters of equal rank and scale are joined too. Not when the three read
    different values, rotate by different tables, or an intermediate value has a
    second use.
  }];
}

def TfmFuseGateUp : FusePass<"tfm-fuse-gate-up"> {
  let summary = "One product for gate and up";
  let description = [{
    As tfm-fuse-qkv, for the two operands of `tfm.gated_silu`.

    Input:
    ```mlir
    %g = tfm.linear %x, %wg : !x, !w
    %u = tfm.linear %x, %wu : !x, !w
    %h = tfm.gated_silu %g, %u : !f, !f
    ```
    Output:
    ```mlir
    %w = tfm.use [@gate, @up] : !w2
    %gu = tfm.linear %x, %w : !x, !w2
    %h = tfm.gated_silu %gu : !2f
    ```
  }];
}

def TfmFuseNormResidual : FusePass<"tfm-fuse-norm-residual"> {
  let summary = "Join residual additions and normalisations";
  let description = [{
    Forward input and output:
    ```mlir
    %s = tfm.add %x, %r : !x, !x
    %y, %rstd = tfm.rms_norm %s, %w {eps = 1.0e-5} : !x, !norm
    ```
    ```mlir
    %s, %y, %rstd = tfm.add_rms_norm %x, %r, %w {eps = 1.0e-5} : !x, !x, !norm
    ```
    Backward:
    ```mlir
    %d = tfm.rms_norm_grad %dy, %s, %w, %rstd : !x, !x, !norm, !t
    %dx = tfm.add %ds, %d : !x, !x
    ```
    ```mlir
    %dx = tfm.rms_norm_grad %dy, %s, %w, %rstd, %ds : !x, !x, !norm, !t, !x
    ```
    Not when the norm's gradient has a second use.
  }];
}

def TfmFuseXent : FusePass<"tfm-fuse-xent"> {
  let summary = "Row losses and their gradient in one pass over the logits";
  let description = [{
    Input:
    ```mlir
    %loss, %lse = tfm.cross_entropy %logits, %targets : !logits, !rows
    %d = tfm.splat {scalar = "loss_weight"} : !r
    %dl = tfm.cross_entropy_grad %logits, %targets, %lse, %d : !logits, !rows, !r, !r
    ```
    Output:
    ```mlir
    %loss, %dl = tfm.fused_cross_entropy %logits, %targets {weight = "loss_weight"} : !logits, !rows
    ```
    Not when the row gradients are no splat, or the logits have a further use:
    the fused operation overwrites them.
  }];
}

def TfmFuseOptimizer : FusePass<"tfm-fuse-optimizer"> {
  let summary = "Update flat buffers instead of parameters";
  let description = [{
    Parameters that fsdp-form-units put into trainable units are updated unit by
    unit: one pass over one flat buffer each. Updates with different options stay
    apart.

    Input:
    ```mlir
    %n = tfm.grad_norm [@a, @b] : tensor<1xf32>
    tfm.optimizer_update [@a], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.optimizer_update [@b], %n rule = "sgd" options = {} : tensor<1xf32>
    ```
    Output, when unit @adapters holds @a and @b:
    ```mlir
    %n = tfm.grad_norm [@adapters] : tensor<1xf32>
    tfm.optimizer_update [@adapters], %n rule = "sgd" options = {} : tensor<1xf32>
    ```
  }];
}

#endif // FSDPQ_FUSE_PASSES_TD
