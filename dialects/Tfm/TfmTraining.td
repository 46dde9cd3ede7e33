//===- TfmTraining.td - Losses, gradient sums, optimizers -----------------===//

#ifndef FSDPQ_TFM_TRAINING_TD
#define FSDPQ_TFM_TRAINING_TD

include "dialects/Tfm/TfmGradients.td"

def Tfm_ReportLossOp : Tfm_Op<"report_loss", [
    MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tfm_DifferentiableOpInterface>]> {
  let summary = "Adds row losses to the loss of the step";
  let description = [{
    Adds the sum of `rows` times the step scalar `weight` to the program's output
    `loss`. Its gradient is `weight` in every row.

    ```mlir
    tfm.report_loss %loss {weight = "loss_weight"} : !r
    ```
  }];
  let arguments = (ins Tfm_Tensor:$rows, StrAttr:$weight);
  let assemblyFormat = "$rows attr-dict `:` type($rows)";
}

def Tfm_EmitOp : Tfm_Op<"emit", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a program's output";
  let description = [{
    ```mlir
    tfm.emit "logits", %l : tensor<1x384xf32>
    ```
  }];
  let arguments = (ins StrAttr:$output, Tfm_Tensor:$value);
  let assemblyFormat = "$output `,` $value attr-dict `:` type($value)";
}

def Tfm_AccumulateOp : Tfm_Op<"accumulate", [
    MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Adds to the gradient of parameters";
  let description = [{
    Adds `gradient` to the gradient of a parameter, or of several joined along
    the first dimension as in `tfm.use`.

    ```mlir
    tfm.accumulate [@q_proj], %dw : tensor<576x576xf32>
    ```
  }];
  let arguments = (ins SymbolRefArrayAttr:$params, Tfm_Tensor:$gradient);
  let assemblyFormat = "$params `,` $gradient attr-dict `:` type($gradient)";
}

def Tfm_GradNormOp : Tfm_Op<"grad_norm", [
    MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "L2 norm of all gradients";
  let description = [{
    The norm over every trainable parameter (before `tfm-fuse-optimizer`) or
    trainable unit (after it) named; also the program's output `grad_norm`.

    ```mlir
    %n = tfm.grad_norm [@q_lora_a, @q_lora_b] : tensor<1xf32>
    ```
  }];
  let arguments = (ins SymbolRefArrayAttr:$params);
  let results = (outs Tfm_Tensor:$norm);
  let assemblyFormat = "$params attr-dict `:` type($norm)";
}

def Tfm_OptimizerUpdateOp : Tfm_Op<"optimizer_update", [
    MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One optimizer step of parameters";
  let description = [{
    Updates the named parameters (units, after `tfm-fuse-optimizer`) from their
    gradients, first scaled by min(1, max_grad_norm / (norm + 1e-6)), and sets
    the gradients to zero. The arithmetic is torch's.

    | rule | state a parameter | options | step scalars |
    |---|---|---|---|
    | `adamw`, `adam` | 2 | beta1, beta2, epsilon, weight_decay | lr, bias_correction1, bias_correction2 |
    | `sgd` | 0 | | lr |
    | `adadelta` | 2 | rho, epsilon | lr |

    `weight_decay` is decoupled. All rules read the step scalar `max_grad_norm`.

    ```mlir
    tfm.optimizer_update [@q_lora_a], %norm rule = "adamw" options =
      {beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-5, weight_decay = 0.1} : tensor<1xf32>
    ```
  }];
  let arguments = (ins SymbolRefArrayAttr:$params, Tfm_Tensor:$norm, StrAttr:$rule,
                       DictionaryAttr:$options);
  let assemblyFormat = [{
    $params `,` $norm `rule` `=` $rule `options` `=` $options attr-dict `:` type($norm)
  }];
  let hasVerifier = 1;
}

#endif // FSDPQ_TFM_TRAINING_TD
