//===- TfmGradients.td - What a backward pass is made of ------------------===//
//
// Besides these, gradients use the forward operations (tfm.matmul, tfm.rope
// with `inverse`, tfm.mul, tfm.scale, tfm.add).
//
//===----------------------------------------------------------------------===//

#ifndef FSDPQ_TFM_GRADIENTS_TD
#define FSDPQ_TFM_GRADIENTS_TD

include "dialects/Tfm/TfmCompute.td"

def Tfm_EmbeddingGradOp : Tfm_Op<"embedding_grad", [Pure]> {
  let summary = "Gradient of a table of rows";
  let description = [{
    `dtable[v, :] = sum of dy[t, :] over t with ids[t] = v`, in order of t.

    ```mlir
    %dt = tfm.embedding_grad %dy, %ids : !x, !ids -> !embed
    ```
  }];
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$ids);
  let results = (outs Tfm_Tensor:$dtable);
  let assemblyFormat = "$dy `,` $ids attr-dict `:` type($dy) `,` type($ids) `->` type($dtable)";
}

def Tfm_LoraLinearGradOp : Tfm_ComputeOp<"lora_linear_grad"> {
  let summary = "Gradient of tfm.lora_linear";
  let description = [{
    With `v = dy b` for each adapted part: `dx = dy w + scale * v a`,
    `da = scale * v^T x`, `db = scale * dy^T u`. With a `mask`,
    `dx = dy w + dropout(scale * v a)` and `da = scale * v^T dropout(x)`. Results
    without uses are not computed.

    ```mlir
    %dx, %da, %db = tfm.lora_linear_grad %dy, %x, %u, %w, %a, %b
      {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>}
      : !y, !x, !u, !w, !a, !b
    ```
  }];
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x, Tfm_Tensor:$u, Tfm_Tensor:$w,
                       Tfm_Tensor:$a, Tfm_Tensor:$b, F64Attr:$scale,
                       DenseI64ArrayAttr:$parts, DenseBoolArrayAttr:$adapted,
                       OptionalAttr<Tfm_DropoutAttr>:$mask);
  let results = (outs Tfm_Tensor:$dx, Tfm_Tensor:$da, Tfm_Tensor:$db);
}

def Tfm_RmsNormGradOp : Tfm_ComputeOp<"rms_norm_grad"> {
  let summary = "Gradient of normalisation with respect to its input";
  let description = [{
    With `g = dy * w`: `dx = rstd * (g - x * rstd^2 * mean(g * x))`, plus `plus`
    when given (`tfm-fuse-norm-residual` moves the addition here).

    ```mlir
    %dx = tfm.rms_norm_grad %dy, %x, %w, %rstd : !x, !x, !norm, !t
    %dx2 = tfm.rms_norm_grad %dy, %x, %w, %rstd, %ds : !x, !x, !norm, !t, !x
    ```
  }];
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x, Tfm_Tensor:$w, Tfm_Tensor:$rstd,
                       Optional<Tfm_Tensor>:$plus);
  let results = (outs Tfm_Tensor:$dx);
}

def Tfm_RmsNormWeightGradOp : Tfm_ComputeOp<"rms_norm_weight_grad"> {
  let summary = "Gradient of normalisation with respect to its weight";
  let description = [{
    `dw[d] = sum_t dy[t, d] * x[t, d] * rstd[t]`.

    ```mlir
    %dw = tfm.rms_norm_weight_grad %dy, %x, %rstd : !x, !x, !t
    ```
  }];
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x, Tfm_Tensor:$rstd);
  let results = (outs Tfm_Tensor:$dw);
}

def Tfm_AttentionGradOp : Tfm_Op<"attention_grad", [Pure, InferTypeOpAdaptor]> {
  let summary = "Gradient of causal attention";
  let description = [{
    The gradients of q, k and v, or of their joined form, from the gradient of
    the output, the forward operands, `o` and `lse`. Deterministic: the gradient
    of k and v sums over the query heads of a group in order.

    ```mlir
    %dqkv = tfm.attention_grad(%qkv) %do, %o, %lse, %segments
      {heads = 4 : i64, kv_heads = 2 : i64} : (!qkv), !q, !q, !h, !ids
    ```
  }];
  let arguments = (ins Variadic<Tfm_Tensor>:$qkv, Tfm_Tensor:$do_, Tfm_Tensor:$o,
                       Tfm_Tensor:$lse, Tfm_Tensor:$segments, I64Attr:$heads,
                       I64Attr:$kv_heads, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<Tfm_FloatOrConfig>:$scale);
  let results = (outs Variadic<Tfm_Tensor>:$dqkv);
  let assemblyFormat = [{
    `(` $qkv `)` $do_ `,` $o `,` $lse `,` $segments attr-dict `:` `(` type($qkv) `)` `,`
    type($do_) `,` type($o) `,` type($lse) `,` type($segments)
  }];
}

def Tfm_SiluGradOp : Tfm_ComputeOp<"silu_grad"> {
  let summary = "Gradient of silu";
  let description = [{
    `dx = dy * s * (1 + x * (1 - s))` with `s = sigmoid(x)`.

    ```mlir
    %dx = tfm.silu_grad %dy, %x : !x, !x
    ```
  }];
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$x);
  let results = (outs Tfm_Tensor:$dx);
}

def Tfm_GatedSiluGradOp : Tfm_ComputeOp<"gated_silu_grad"> {
  let summary = "Gradient of silu(gate) * up";
  let description = [{
    The gradients of gate and up, or of their joined form.

    ```mlir
    %dgu = tfm.gated_silu_grad %dy, %gate_up : !f, !2f
    ```
  }];
  let arguments = (ins Tfm_Tensor:$dy, Variadic<Tfm_Tensor>:$gate_up);
  let results = (outs Variadic<Tfm_Tensor>:$dgate_up);
}

def Tfm_ScatterRowsOp : Tfm_ComputeOp<"scatter_rows"> {
  let summary = "Gradient of chosen rows";
  let description = [{
    `dx[t, :] = dy[index[t], :]`, and 0 where `index[t]` is negative.

    ```mlir
    %dx = tfm.scatter_rows %dy, %index : !rx, !ids
    ```
  }];
  let arguments = (ins Tfm_Tensor:$dy, Tfm_Tensor:$index);
  let results = (outs Tfm_Tensor:$dx);
}

def Tfm_CrossEntropyGradOp : Tfm_ComputeOp<"cross_entropy_grad"> {
  let summary = "Gradient of the row losses";
  let description = [{
    `dlogits[i, v] = dloss[i] * (exp(logits[i, v] - lse[i]) - [v = targets[i]])`,
    and 0 where the target is negative.

    ```mlir
    %dl = tfm.cross_entropy_grad %logits, %targets, %lse, %dloss : !logits, !rows, !r, !r
    ```
  }];
  let arguments = (ins Tfm_Tensor:$logits, Tfm_Tensor:$targets, Tfm_Tensor:$lse,
                       Tfm_Tensor:$dloss);
  let results = (outs Tfm_Tensor:$dlogits);
}

def Tfm_FusedCrossEntropyOp : Tfm_ComputeOp<"fused_cross_entropy"> {
  let summary = "Row losses and their gradient in one pass";
  let description = [{
    `loss` as `tfm.cross_entropy`; `dlogits` its gradient for a loss gradient
    that is the step scalar `weight` in every row. The gradient overwrites the
    logits. `tfm-fuse-xent` makes it.

    ```mlir
    %loss, %dl = tfm.fused_cross_entropy %logits, %targets {weight = "loss_weight"}
      : !logits, !rows
    ```
  }];
  let arguments = (ins Tfm_Tensor:$logits, Tfm_Tensor:$targets, StrAttr:$weight);
  let results = (outs Tfm_Tensor:$loss, Tfm_Tensor:$dlogits);
}

def Tfm_SplatOp : Tfm_Op<"splat", [Pure]> {
  let summary = "A step scalar in every element";
  let description = [{
    ```mlir
    %d = tfm.splat {scalar = "loss_weight"} : tensor<128xf32, #tfm.dims<"R">>
    ```
  }];
  let arguments = (ins StrAttr:$scalar);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif // FSDPQ_TFM_GRADIENTS_TD
