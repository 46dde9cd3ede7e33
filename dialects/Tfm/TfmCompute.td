//===- TfmCompute.td - What a forward pass is made of ---------------------===//

#ifndef FSDPQ_TFM_COMPUTE_TD
#define FSDPQ_TFM_COMPUTE_TD

include "dialects/Tfm/TfmStructure.td"

// An attribute that may still wait for the configuration.
def Tfm_IntOrConfig : AnyAttrOf<[I64Attr, Tfm_ConfigAttr], "an integer", "::mlir::Attribute", "$_self">;
def Tfm_FloatOrConfig : AnyAttrOf<[F64Attr, I64Attr, Tfm_ConfigAttr], "a number", "::mlir::Attribute", "$_self">;

defvar Tfm_Tensor = AnyRankedTensor;

// Results are inferred from operands and attributes, so only operand types are
// written.
class Tfm_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Tfm_Op<mnemonic, !listconcat([Pure, InferTypeOpAdaptor], traits)> {
  let assemblyFormat = "operands attr-dict `:` type(operands)";
}

class Tfm_DifferentiableOp<string mnemonic, list<Trait> traits = []>
    : Tfm_ComputeOp<mnemonic, !listconcat(
        [DeclareOpInterfaceMethods<Tfm_DifferentiableOpInterface>], traits)>;

def Tfm_EmbeddingOp : Tfm_DifferentiableOp<"embedding"> {
  let summary = "Rows of a table";
  let description = [{
    `y[t, :] = table[ids[t], :]`.

    ```mlir
    %x = tfm.embedding %ids, %table : !ids, !embed
    ```
  }];
  let arguments = (ins Tfm_Tensor:$ids, Tfm_Tensor:$table);
  let results = (outs Tfm_Tensor:$y);
  let hasVerifier = 1;
}

def Tfm_LinearOp : Tfm_DifferentiableOp<"linear"> {
  let summary = "Matrix product with a weight stored [out, in]";
  let description = [{
    `y = x w^T`; `w` may have a `qt` element type.

    ```mlir
    %q = tfm.linear %x, %w : !x, !q_proj
    ```
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$w);
  let results = (outs Tfm_Tensor:$y);
  let hasVerifier = 1;
}

def Tfm_DropoutOp : Tfm_DifferentiableOp<"dropout"> {
  let summary = "Some elements set to zero, the others scaled up";
  let description = [{
    `y = x * keep / (1 - rate)`, with `keep` 0 or 1 as `#tfm.dropout` says
    (Srivastava et al., "Dropout", 2014). Its gradient is itself. Programs that do
    not train have none: see `tfm-skip-dropout`.

    ```mlir
    %y = tfm.dropout %x {mask = #tfm.dropout<rate = 1.0e-01 : f64, site = 0>} : !x
    ```
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_DropoutAttr:$mask);
  let results = (outs Tfm_Tensor:$y);
}

def Tfm_LoraLinearOp : Tfm_DifferentiableOp<"lora_linear"> {
  let summary = "Linear with a low-rank adapter";
  let description = [{
    `u = x a^T`, `y = x w^T + scale * u b^T` (Hu et al., "LoRA", 2021). With a
    `mask`, `u = dropout(x) a^T`.

    When several linear layers that share `x` are one, `parts` are their output
    sizes and `adapted` says which have an adapter: `a` joins the adapters' first
    factors (r rows each), `b` their second factors (r columns), and the k-th
    adapter uses columns [k*r, (k+1)*r) of `u`.

    ```mlir
    %y, %u = tfm.lora_linear %x, %w, %a, %b
      {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>} : !x, !w, !a, !b
    ```
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$w, Tfm_Tensor:$a, Tfm_Tensor:$b,
                       F64Attr:$scale, DenseI64ArrayAttr:$parts,
                       DenseBoolArrayAttr:$adapted,
                       OptionalAttr<Tfm_DropoutAttr>:$mask);
  let results = (outs Tfm_Tensor:$y, Tfm_Tensor:$u);
  let hasVerifier = 1;
}

def Tfm_MatmulOp : Tfm_DifferentiableOp<"matmul"> {
  let summary = "Matrix product";
  let description = [{
    `op(a) op(b)` with either operand transposed. Gradients of linear layers are
    made of it. With `sum` the result is in the type that products are summed in,
    f32 where the operands are bf16: gradients of parameters are.

    ```mlir
    %dx = tfm.matmul %dy, %w : !q, !q_proj
    %dw = tfm.matmul %dy, %x {trans_a} : !q, !x
    ```
  }];
  let arguments = (ins Tfm_Tensor:$a, Tfm_Tensor:$b, UnitAttr:$trans_a, UnitAttr:$trans_b,
                       UnitAttr:$sum);
  let results = (outs Tfm_Tensor:$y);
  let hasVerifier = 1;
}

def Tfm_RmsNormOp : Tfm_DifferentiableOp<"rms_norm"> {
  let summary = "Root mean square normalisation";
  let description = [{
    `rstd = 1 / sqrt(mean(x^2) + eps)`, `y = x * rstd * w` (Zhang and Sennrich,
    2019).

    ```mlir
    %y, %rstd = tfm.rms_norm %x, %w {eps = 1.0e-5} : !x, !norm
    ```
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$w, Tfm_FloatOrConfig:$eps);
  let results = (outs Tfm_Tensor:$y, Tfm_Tensor:$rstd);
  let hasVerifier = 1;
}

def Tfm_AddRmsNormOp : Tfm_DifferentiableOp<"add_rms_norm"> {
  let summary = "Residual addition and normalisation of the sum";
  let description = [{
    `sum = x + residual`, `y = sum * rstd(sum) * w`, one pass over memory.
    `tfm-fuse-norm-residual` makes it.

    ```mlir
    %sum, %y, %rstd = tfm.add_rms_norm %x, %r, %w {eps = 1.0e-5} : !x, !x, !norm
    ```
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$residual, Tfm_Tensor:$w,
                       Tfm_FloatOrConfig:$eps);
  let results = (outs Tfm_Tensor:$sum, Tfm_Tensor:$y, Tfm_Tensor:$rstd);
  let hasVerifier = 1;
}

def Tfm_RopeTableOp : Tfm_Op<"rope_table", [Pure]> {
  let summary = "Cosines and sines of rotary positions";
  let description = [{
    Row t holds cos(p_t f_i) for i < E/2 and then sin(p_t f_i), where
    `f_i = theta^(-2i/E)` after `scaling`, a dictionary as Hugging Face's
    `rope_parameters`: `rope_type` (or `type`) is `default`, `linear` or `llama3`.
    `factors`, a list of E/2 numbers some GGUF files carry, divides the f_i.

    ```mlir
    %rope = tfm.rope_table %positions {theta = 1.0e4} : !ids -> !rope
    ```
  }];
  let arguments = (ins Tfm_Tensor:$positions, Tfm_FloatOrConfig:$theta,
                       OptionalAttr<AnyAttr>:$scaling, OptionalAttr<AnyAttr>:$factors);
  let results = (outs Tfm_Tensor:$table);
  let assemblyFormat = "$positions attr-dict `:` type($positions) `->` type($table)";
  let hasVerifier = 1;
}

def Tfm_RopeOp : Tfm_DifferentiableOp<"rope"> {
  let summary = "Rotary position embedding";
  let description = [{
    Rotates the first `heads` heads of each row, E columns each, in pairs
    (i, i + E/2) as Hugging Face does; further columns pass unchanged. `inverse`
    rotates back, which is also the gradient (Su et al., "RoFormer", 2021).

    ```mlir
    %q1 = tfm.rope %q, %rope {heads = 9 : i64} : !q, !rope
    ```
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$table, Tfm_IntOrConfig:$heads,
                       UnitAttr:$inverse);
  let results = (outs Tfm_Tensor:$y);
  let hasVerifier = 1;
}

def Tfm_AttentionOp : Tfm_DifferentiableOp<"attention"> {
  let summary = "Causal attention";
  let description = [{
    Operands are q, k, v and the segment starts, or one tensor with the columns
    of q, k and v side by side and the segment starts. `heads` query heads share
    `kv_heads` key heads. Token t sees token s when
    `segments[t] <= s <= t` and, with `window`, `t - s < window`. Scores are
    multiplied by `scale`, 1/sqrt(E) when absent. `lse` holds the log-sum-exp of
    each token's scores for each head.

    ```mlir
    %o, %lse = tfm.attention(%q, %k, %v) %segments {heads = 4 : i64, kv_heads = 2 : i64}
      : (!q, !k, !k), !ids
    ```
  }];
  let arguments = (ins Variadic<Tfm_Tensor>:$qkv, Tfm_Tensor:$segments,
                       Tfm_IntOrConfig:$heads, Tfm_IntOrConfig:$kv_heads,
                       OptionalAttr<Tfm_IntOrConfig>:$window,
                       OptionalAttr<Tfm_FloatOrConfig>:$scale);
  let results = (outs Tfm_Tensor:$o, Tfm_Tensor:$lse);
  let assemblyFormat = [{
    `(` $qkv `)` $segments attr-dict `:` `(` type($qkv) `)` `,` type($segments)
  }];
  let hasVerifier = 1;
}

def Tfm_SiluOp : Tfm_DifferentiableOp<"silu"> {
  let summary = "x * sigmoid(x)";
  let description = [{
    ```mlir
    %y = tfm.silu %x : !x
    ```
  }];
  let arguments = (ins Tfm_Tensor:$x);
  let results = (outs Tfm_Tensor:$y);
}

def Tfm_GatedSiluOp : Tfm_DifferentiableOp<"gated_silu"> {
  let summary = "silu(gate) * up";
  let description = [{
    Operands are gate and up, or one tensor with the columns of gate and then up.

    ```mlir
    %h = tfm.gated_silu %gate, %up : !f, !f
    %h2 = tfm.gated_silu %gate_up : !2f
    ```
  }];
  let arguments = (ins Variadic<Tfm_Tensor>:$gate_up);
  let results = (outs Tfm_Tensor:$y);
  let hasVerifier = 1;
}

def Tfm_AddOp : Tfm_DifferentiableOp<"add"> {
  let summary = "Sum of two tensors";
  let description = [{
    ```mlir
    %y = tfm.add %a, %b : !x, !x
    ```
  }];
  let arguments = (ins Tfm_Tensor:$a, Tfm_Tensor:$b);
  let results = (outs Tfm_Tensor:$y);
  let hasVerifier = 1;
}

def Tfm_MulOp : Tfm_DifferentiableOp<"mul"> {
  let summary = "Product of two tensors, element by element";
  let description = [{
    ```mlir
    %y = tfm.mul %a, %b : !x, !x
    ```
  }];
  let arguments = (ins Tfm_Tensor:$a, Tfm_Tensor:$b);
  let results = (outs Tfm_Tensor:$y);
  let hasVerifier = 1;
}

def Tfm_ScaleOp : Tfm_DifferentiableOp<"scale"> {
  let summary = "Product with a number";
  let description = [{
    ```mlir
    %y = tfm.scale %x {factor = 2.0} : !x
    ```
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_FloatOrConfig:$factor);
  let results = (outs Tfm_Tensor:$y);
}

def Tfm_CastOp : Tfm_Op<"cast", [Pure,
    DeclareOpInterfaceMethods<Tfm_DifferentiableOpInterface>]> {
  let summary = "The same values in another floating point type";
  let description = [{
    Rounds to the nearest value, ties to even. The gradient is that of the result,
    in the operand's type: a trained parameter is stored in f32, products take its
    cast, and its gradient, which is summed in f32, passes unchanged.

    ```mlir
    %a16 = tfm.cast %a : tensor<8x576xf32> -> tensor<8x576xbf16>
    ```
  }];
  let arguments = (ins Tfm_Tensor:$x);
  let results = (outs Tfm_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($y)";
  let hasVerifier = 1;
}

def Tfm_GatherRowsOp : Tfm_DifferentiableOp<"gather_rows"> {
  let summary = "Chosen rows";
  let description = [{
    `y[i, :] = x[rows[i], :]`. `index` is the inverse: `index[rows[i]] = i`, and
    -1 for rows that are not chosen; the gradient needs it.

    ```mlir
    %y = tfm.gather_rows %x, %rows, %index : !x, !rows, !ids
    ```
  }];
  let arguments = (ins Tfm_Tensor:$x, Tfm_Tensor:$rows, Tfm_Tensor:$index);
  let results = (outs Tfm_Tensor:$y);
  let hasVerifier = 1;
}

def Tfm_CrossEntropyOp : Tfm_DifferentiableOp<"cross_entropy"> {
  let summary = "Negative log-likelihood of the targets, by row";
  let description = [{
    `loss[i] = log(sum_v exp(logits[i, v])) - logits[i, targets[i]]` in nats, and
    0 where the target is negative. `lse` is the first term.

    ```mlir
    %loss, %lse = tfm.cross_entropy %logits, %targets : !logits, !rows
    ```
  }];
  let arguments = (ins Tfm_Tensor:$logits, Tfm_Tensor:$targets);
  let results = (outs Tfm_Tensor:$loss, Tfm_Tensor:$lse);
  let hasVerifier = 1;
}

#endif // FSDPQ_TFM_COMPUTE_TD
