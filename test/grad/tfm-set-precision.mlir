// RUN: %opt %s --tfm-set-precision | FileCheck %s
// RUN: %opt %s --tfm-set-precision="storage=f32" | FileCheck %s --check-prefix=F32
// RUN: %opt %s --tfm-set-precision --tfm-autodiff --tfm-plan-residuals="mode=none" \
// RUN:   | FileCheck %s --check-prefix=GRAD
// RUN: %opt %s --tfm-set-precision --tfm-autodiff --tfm-plan-residuals="mode=block" \
// RUN:   | FileCheck %s --check-prefix=BLOCK
//
// Activations and frozen weights become bf16, row statistics, losses and rotary
// tables stay f32, trained weights are cast where they are used.

!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!rope = tensor<128x16xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>
!q = tensor<64x64x!qt.nf4<block = 64, scale = f32>>
!a = tensor<8x64xf32>
!b = tensor<64x8xf32>
!norm = tensor<64xf32>
!table = tensor<384x64xf32>
!r = tensor<128xi32, #tfm.dims<"R">>
!cx = tensor<128x64xf32, #tfm.dims<"C", "">>
!c = tensor<128xi32, #tfm.dims<"C">>

// Nothing changes.
// F32-NOT: bf16

// CHECK: tfm.param @embed : tensor<384x64xbf16>
// CHECK: tfm.param @norm per_layer : tensor<64xbf16>
// CHECK: tfm.param @q per_layer : tensor<64x64x!qt.nf4<block = 64, scale = f32>> {hf = "q.{layer}", rounded = bf16}
// CHECK: tfm.param @a per_layer : tensor<8x64xf32> {{.*}}trainable
// CHECK: tfm.param @b per_layer : tensor<64x8xf32> {{.*}}trainable

// The table of rotations is passed to the layer in f32, the activation in bf16.
// CHECK-LABEL: tfm.layer @k(
// CHECK-SAME: tensor<128x64xbf16, #dims_T_>, {{.*}}tensor<128x16xf32, #dims_T_>) -> tensor<128x64xbf16, #dims_T_>
// CHECK: %[[W:.+]] = tfm.use [@norm] : tensor<64xbf16>
// CHECK: %[[Q:.+]] = tfm.use [@q] : tensor<64x64x!qt
// CHECK: %[[A:.+]] = tfm.use [@a] : tensor<8x64xf32>
// CHECK-NEXT: %[[A16:.+]] = tfm.cast %[[A]] : tensor<8x64xf32> -> tensor<8x64xbf16>
// CHECK: %[[B:.+]] = tfm.use [@b] : tensor<64x8xf32>
// CHECK-NEXT: %[[B16:.+]] = tfm.cast %[[B]] : tensor<64x8xf32> -> tensor<64x8xbf16>
// CHECK: tfm.rms_norm %{{.+}}, %[[W]] {eps = {{.+}}} : tensor<128x64xbf16, #dims_T_>, tensor<64xbf16>
// CHECK: tfm.lora_linear %{{.+}}, %[[Q]], %[[A16]], %[[B16]]
// CHECK: tfm.rope %{{.+}}, %{{.+}} {heads = 4 : i64} : tensor<128x64xbf16, #dims_T_>, tensor<128x16xf32, #dims_T_>

// Losses are f32; so is what a program emits.
// CHECK-LABEL: tfm.func @micro_step.head(
// CHECK-SAME: tensor<128x64xbf16, #dims_C_>
// CHECK: tfm.report_loss %{{.+}} : tensor<128xf32, #dims_C>
// CHECK-LABEL: tfm.func @micro_step(
// CHECK: tfm.rope_table %{{.+}} -> tensor<128x16xf32, #dims_T_>
// CHECK: tfm.stack{{.*}} -> tensor<128x64xbf16, #dims_T_>
// CHECK: tfm.chunk_loop{{.*}}tensor<128x64xbf16, #dims_R_>
// CHECK-LABEL: tfm.func @logits(
// CHECK: %[[L:.+]] = tfm.cast %{{.+}} : tensor<128x384xbf16, #dims_T_> -> tensor<128x384xf32, #dims_T_>
// CHECK-NEXT: tfm.emit "logits", %[[L]] : tensor<128x384xf32, #dims_T_>

// Statistics are kept in f32, activations in bf16; weights and their copies are
// made again. The gradients of trained parameters are f32.
// GRAD-LABEL: tfm.layer @k.forward(
// GRAD: tfm.return {{.*}} : tensor<128x64xbf16, #dims_T_>, {{.*}}tensor<128xf32, #dims_T>
// GRAD-LABEL: tfm.layer @k.backward(
// GRAD: %[[USE:.+]] = tfm.use [@b] : tensor<64x8xf32>
// GRAD: tfm.cast %[[USE]] : tensor<64x8xf32> -> tensor<64x8xbf16>
// GRAD: tfm.lora_linear_grad
// GRAD: tfm.accumulate [@b], %{{.+}} : tensor<64x8xf32>
// GRAD: tfm.accumulate [@a], %{{.+}} : tensor<8x64xf32>

// What is recomputed uses the same copies.
// BLOCK-LABEL: tfm.layer @k.backward(
// BLOCK: tfm.cast
// BLOCK: tfm.cast
// BLOCK-NOT: tfm.cast
// BLOCK: tfm.return
tfm.architecture @m {
  tfm.param @embed : !table {hf = "embed"}
  tfm.param @norm per_layer : !norm {hf = "norm.{layer}"}
  tfm.param @q per_layer : !q {hf = "q.{layer}"}
  tfm.param @a per_layer : !a {hf = "a.{layer}", init = "kaiming_uniform", trainable}
  tfm.param @b per_layer : !b {hf = "b.{layer}", init = "zeros", trainable}
  tfm.layer @k(%x: !x, %rope: !rope) -> !x {
    %w = tfm.use [@norm] : !norm
    %q = tfm.use [@q] : !q
    %a = tfm.use [@a] : !a
    %b = tfm.use [@b] : !b
    %y, %rstd = tfm.rms_norm %x, %w {eps = 1.0e-5} : !x, !norm
    %z, %u = tfm.lora_linear %y, %q, %a, %b
      {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>} : !x, !q, !a, !b
    %r = tfm.rope %z, %rope {heads = 4 : i64} : !x, !rope
    %s = tfm.add %x, %r : !x, !x
    tfm.return %s : !x
  }
  tfm.func @micro_step.head(%x: !cx, %t: !c) {
    %loss, %lse = tfm.cross_entropy %x, %t : !cx, !c
    tfm.report_loss %loss {weight = "loss_weight"} : tensor<128xf32, #tfm.dims<"C">>
    tfm.return
  }
  tfm.func @micro_step(%ids: !ids, %rows: !r, %targets: !r, %index: !ids) {
    %e = tfm.use [@embed] : !table
    %x = tfm.embedding %ids, %e : !ids, !table
    %rope = tfm.rope_table %ids {theta = 1.0e4} : !ids -> !rope
    %y = tfm.stack(%x) shared(%rope) kinds = [@k] {layers = array<i32: 0, 0>} : !x, !rope -> !x
    %g = tfm.gather_rows %y, %rows, %index : !x, !r, !ids
    tfm.chunk_loop(%g, %targets) body = @micro_step.head chunk = 128
      : (tensor<128x64xf32, #tfm.dims<"R", "">>, !r)
    tfm.return
  }
  tfm.func @logits(%ids: !ids) {
    %e = tfm.use [@embed] : !table
    %x = tfm.embedding %ids, %e : !ids, !table
    %rope = tfm.rope_table %ids {theta = 1.0e4} : !ids -> !rope
    %y = tfm.stack(%x) shared(%rope) kinds = [@k] {layers = array<i32: 0, 0>} : !x, !rope -> !x
    %l = tfm.linear %y, %e : !x, !table
    tfm.emit "logits", %l : tensor<128x384xf32, #tfm.dims<"T", "">>
    tfm.return
  }
}
