// RUN: %opt %s --tfm-insert-adapters='rank=4 scale=2.0 targets=q_proj' | FileCheck %s
// RUN: %opt %s --tfm-insert-adapters=targets=all | grep -o '@[a-z_]*\.lora_A ' | sort | FileCheck %s --check-prefix=ALL
// RUN: %opt %s --tfm-insert-adapters=targets=all-linear | grep -o '@[a-z_]*\.lora_A ' | sort | FileCheck %s --check-prefix=LINEAR
// RUN: %opt %s --tfm-insert-adapters=targets=default | grep -o '@[a-z_]*\.lora_A ' | sort | FileCheck %s --check-prefix=DEFAULT
// RUN: %opt %s --tfm-insert-adapters=targets=o_proj,default,o_proj | grep -o '@[a-z_]*\.lora_A ' | sort | FileCheck %s --check-prefix=LIST

// `all` is the reference's list: without o_proj.
// ALL: @down.lora_A
// ALL-NEXT: @gate.lora_A
// ALL-NEXT: @k.lora_A
// ALL-NEXT: @q.lora_A
// ALL-NEXT: @up.lora_A
// ALL-NEXT: @v.lora_A
// ALL-NOT: lora_A
// LINEAR: @down.lora_A
// LINEAR-NEXT: @gate.lora_A
// LINEAR-NEXT: @k.lora_A
// LINEAR-NEXT: @o.lora_A
// LINEAR-NEXT: @q.lora_A
// LINEAR-NEXT: @up.lora_A
// LINEAR-NEXT: @v.lora_A
// LINEAR-NOT: lora_A
// DEFAULT: @q.lora_A
// DEFAULT-NEXT: @v.lora_A
// DEFAULT-NOT: lora_A
// LIST: @o.lora_A
// LIST-NEXT: @q.lora_A
// LIST-NEXT: @v.lora_A
// LIST-NOT: lora_A

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

tfm.architecture @m {
  // Factors are named as PEFT names them; they are trainable and no checkpoint
  // holds them.
  // CHECK: tfm.param @q per_layer : tensor<32x64xf32> {hf = "model.layers.{layer}.self_attn.q_proj.weight"}
  // CHECK-DAG: tfm.param @q.lora_A per_layer : tensor<4x64xf32> {hf = "base_model.model.model.layers.{layer}.self_attn.q_proj.lora_A.weight", init = "kaiming_uniform", trainable}
  // CHECK-DAG: tfm.param @q.lora_B per_layer : tensor<32x4xf32> {hf = "base_model.model.model.layers.{layer}.self_attn.q_proj.lora_B.weight", init = "zeros", trainable}
  tfm.param @q per_layer : tensor<32x64xf32> {hf = "model.layers.{layer}.self_attn.q_proj.weight"}
  tfm.param @k per_layer : !w {hf = "model.layers.{layer}.self_attn.k_proj.weight"}
  tfm.param @v per_layer : !w {hf = "model.layers.{layer}.self_attn.v_proj.weight"}
  tfm.param @o per_layer : !w {hf = "model.layers.{layer}.self_attn.o_proj.weight"}
  tfm.param @gate per_layer : !w {hf = "model.layers.{layer}.mlp.gate_proj.weight"}
  tfm.param @up per_layer : !w {hf = "model.layers.{layer}.mlp.up_proj.weight"}
  tfm.param @down per_layer : !w {hf = "model.layers.{layer}.mlp.down_proj.weight"}
  tfm.param @head : !w {hf = "lm_head.weight"}
  tfm.param @unnamed per_layer : !w {gguf = "blk.{layer}.x"}

// CHECK-LABEL: tfm.layer @block(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x32xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@q] : tensor<32x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<32x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.use [@q.lora_A] : tensor<4x64xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.use [@q.lora_B] : tensor<32x4xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.linear %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<4x64xf32>
// CHECK-NEXT:   %[[V5:.+]] = tfm.linear %[[V4]], %[[V3]] : tensor<128x4xf32, #dims_T_>, tensor<32x4xf32>
// CHECK-NEXT:   %[[V6:.+]] = tfm.scale %[[V5]] {factor = 2.000000e+00 : f64} : tensor<128x32xf32, #dims_T_>
// CHECK-NEXT:   %[[V7:.+]] = tfm.add %[[V1]], %[[V6]] : tensor<128x32xf32, #dims_T_>, tensor<128x32xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V7]] : tensor<128x32xf32, #dims_T_>
  tfm.layer @block(%x: !x) -> tensor<128x32xf32, #tfm.dims<"T", "">> {
    %w = tfm.use [@q] : tensor<32x64xf32>
    %y = tfm.linear %x, %w : !x, tensor<32x64xf32>
    tfm.return %y : tensor<128x32xf32, #tfm.dims<"T", "">>
  }
  // A second kind that uses the parameter shares its adapter.
  // CHECK-LABEL: tfm.layer @rest
  // CHECK: tfm.use [@q.lora_A] : tensor<4x64xf32>
  // CHECK-NOT: lora_A
  tfm.layer @rest(%x: !x) -> tensor<128x32xf32, #tfm.dims<"T", "">> {
    %q = tfm.use [@q] : tensor<32x64xf32>
    %k = tfm.use [@k] : !w
    %v = tfm.use [@v] : !w
    %o = tfm.use [@o] : !w
    %g = tfm.use [@gate] : !w
    %u = tfm.use [@up] : !w
    %d = tfm.use [@down] : !w
    %n = tfm.use [@unnamed] : !w
    %0 = tfm.linear %x, %k : !x, !w
    %1 = tfm.linear %0, %v : !x, !w
    %2 = tfm.linear %1, %o : !x, !w
    %3 = tfm.linear %2, %g : !x, !w
    %4 = tfm.linear %3, %u : !x, !w
    %5 = tfm.linear %4, %d : !x, !w
    %6 = tfm.linear %5, %n : !x, !w
    %y = tfm.linear %6, %q : !x, tensor<32x64xf32>
    tfm.return %y : tensor<128x32xf32, #tfm.dims<"T", "">>
  }
  // The head is no layer.
  // CHECK-LABEL: tfm.func @head_func
  // CHECK-NOT: lora
  tfm.func @head_func(%x: !x) -> !x {
    %w = tfm.use [@head] : !w
    %y = tfm.linear %x, %w : !x, !w
    tfm.return %y : !x
  }
}
