// RUN: %opt %s --tfm-autodiff --split-input-file | FileCheck %s
//
// The rule of each operation, what is kept for it, and what is not built.

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// The lowest layer in full. A forward kind returns its result and then what the
// backward kind takes after the incoming gradient. @f is frozen: its gradient is
// not built, and the input of its product is not kept.
// CHECK-LABEL: tfm.layer @k.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@w] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@f] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.linear %[[V2]], %[[V1]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V3]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @k.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@w] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@f] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.matmul %[[ARG0]], %[[V1]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.matmul %[[V2]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.matmul %[[V2]], %[[ARG1]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@w], %[[V4]] : tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V3]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.func @micro_step.head.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_C_>, %[[ARG1:.+]]: tensor<128xi32, #dims_C>) -> tensor<128x64xf32, #dims_C_> {
// CHECK-NEXT:   %[[LOSS:.+]], %[[LSE:.+]] = tfm.cross_entropy %[[ARG0]], %[[ARG1]] : tensor<128x64xf32, #dims_C_>, tensor<128xi32, #dims_C>
// CHECK-NEXT:   tfm.report_loss %[[LOSS]] {weight = "loss_weight"} : tensor<128xf32, #dims_C>
// CHECK-NEXT:   %[[V0:.+]] = tfm.splat {scalar = "loss_weight"} : tensor<128xf32, #dims_C>
// CHECK-NEXT:   %[[V1:.+]] = tfm.cross_entropy_grad %[[ARG0]], %[[ARG1]], %[[LSE]], %[[V0]] : tensor<128x64xf32, #dims_C_>, tensor<128xi32, #dims_C>, tensor<128xf32, #dims_C>, tensor<128xf32, #dims_C>
// CHECK-NEXT:   tfm.return %[[V1]] : tensor<128x64xf32, #dims_C_>
// CHECK-LABEL: tfm.func @micro_step(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128xi32, #dims_R>, %[[ARG2:.+]]: tensor<128xi32, #dims_R>, %[[ARG3:.+]]: tensor<128xi32, #dims_T>) {
// CHECK-NEXT:   %[[Y:.+]], %[[SAVED:.+]] = tfm.stack(%[[ARG0]]) kinds = [@k.forward] {layers = array<i32: 0, 0>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>, !tfm.saved
// CHECK-NEXT:   %[[V0:.+]] = tfm.gather_rows %[[Y]], %[[ARG1]], %[[ARG3]] : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_R>, tensor<128xi32, #dims_T>
// CHECK-NEXT:   %[[V1:.+]] = tfm.chunk_loop(%[[V0]], %[[ARG2]]) body = @micro_step.head.backward chunk = 128 : (tensor<128x64xf32, #dims_R_>, tensor<128xi32, #dims_R>) -> tensor<128x64xf32, #dims_R_>
// CHECK-NEXT:   %[[V2:.+]] = tfm.scatter_rows %[[V1]], %[[ARG3]] : tensor<128x64xf32, #dims_R_>, tensor<128xi32, #dims_T>
// CHECK-NEXT:   %[[V3:.+]] = tfm.stack_grad(%[[V2]]) saved(%[[SAVED]]) kinds = [@k.backward] {layers = array<i32: 0, 0>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return
tfm.architecture @whole {
  tfm.param @w per_layer : !w {hf = "w.{layer}", trainable}
  tfm.param @f per_layer : !w {hf = "f.{layer}"}
  tfm.layer @k(%x: !x) -> !x {
    %w = tfm.use [@w] : !w
    %f = tfm.use [@f] : !w
    %y = tfm.linear %x, %w : !x, !w
    %z = tfm.linear %y, %f : !x, !w
    tfm.return %z : !x
  }
  tfm.func @micro_step.head(%x: tensor<128x64xf32, #tfm.dims<"C", "">>, %t: tensor<128xi32, #tfm.dims<"C">>) {
    %loss, %lse = tfm.cross_entropy %x, %t : tensor<128x64xf32, #tfm.dims<"C", "">>, tensor<128xi32, #tfm.dims<"C">>
    tfm.report_loss %loss {weight = "loss_weight"} : tensor<128xf32, #tfm.dims<"C">>
    tfm.return
  }
  tfm.func @micro_step(%x: !x, %rows: tensor<128xi32, #tfm.dims<"R">>, %targets: tensor<128xi32, #tfm.dims<"R">>,
                       %index: tensor<128xi32, #tfm.dims<"T">>) {
    %y = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0, 0>} : !x -> !x
    %r = tfm.gather_rows %y, %rows, %index : !x, tensor<128xi32, #tfm.dims<"R">>, tensor<128xi32, #tfm.dims<"T">>
    tfm.chunk_loop(%r, %targets) body = @micro_step.head chunk = 128
      : (tensor<128x64xf32, #tfm.dims<"R", "">>, tensor<128xi32, #tfm.dims<"R">>)
    tfm.return
  }
}

// -----

// Two kinds, in turn: a forward and a backward kind of each; the map of the
// backward pass is written from the lowest layer too.
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @a.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@w] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V1]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @a.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@w] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.matmul %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.matmul %[[ARG0]], %[[ARG1]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@w], %[[V2]] : tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V1]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @b.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128xf32, #dims_T>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@n] : tensor<64xf32>
// CHECK-NEXT:   %[[Y:.+]], %[[RSTD:.+]] = tfm.rms_norm %[[ARG0]], %[[V0]] {eps = 1.000000e-05 : f64} : tensor<128x64xf32, #dims_T_>, tensor<64xf32>
// CHECK-NEXT:   tfm.return %[[Y]], %[[RSTD]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128xf32, #dims_T>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @b.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128xf32, #dims_T>, %[[ARG2:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@n] : tensor<64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.rms_norm_grad %[[ARG0]], %[[ARG2]], %[[V0]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<64xf32>, tensor<128xf32, #dims_T>
// CHECK-NEXT:   tfm.return %[[V1]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.func @micro_step(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128xi32, #dims_T>) {
// CHECK-NEXT:   %[[Y:.+]], %[[SAVED:.+]] = tfm.stack(%[[ARG0]]) kinds = [@a.forward, @b.forward] {layers = array<i32: 0, 1, 0, 1, 0>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>, !tfm.saved
// CHECK-NEXT:   %[[LOSS:.+]], %[[LSE:.+]] = tfm.cross_entropy %[[Y]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T>
// CHECK-NEXT:   tfm.report_loss %[[LOSS]] {weight = "loss_weight"} : tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V0:.+]] = tfm.splat {scalar = "loss_weight"} : tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V1:.+]] = tfm.cross_entropy_grad %[[Y]], %[[ARG1]], %[[LSE]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T>, tensor<128xf32, #dims_T>, tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V2:.+]] = tfm.stack_grad(%[[V1]]) saved(%[[SAVED]]) kinds = [@a.backward, @b.backward] {layers = array<i32: 0, 1, 0, 1, 0>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return
tfm.architecture @kinds {
  tfm.param @w per_layer : !w {hf = "w.{layer}", trainable}
  tfm.param @n per_layer : tensor<64xf32> {hf = "n.{layer}"}
  tfm.layer @a(%x: !x) -> !x {
    %w = tfm.use [@w] : !w
    %y = tfm.linear %x, %w : !x, !w
    tfm.return %y : !x
  }
  tfm.layer @b(%x: !x) -> !x {
    %n = tfm.use [@n] : tensor<64xf32>
    %y, %rstd = tfm.rms_norm %x, %n {eps = 1.0e-5} : !x, tensor<64xf32>
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %y1: tensor<128xi32, #tfm.dims<"T">>) {
    %y = tfm.stack(%x) kinds = [@a, @b] {layers = array<i32: 0, 1, 0, 1, 0>} : !x -> !x
    %t, %u = tfm.cross_entropy %y, %y1 : !x, tensor<128xi32, #tfm.dims<"T">>
    tfm.report_loss %t {weight = "loss_weight"} : tensor<128xf32, #tfm.dims<"T">>
    tfm.return
  }
}

// -----

// tfm.lora_linear: one operation gives dx, da and db; the frozen weight gets
// nothing. Weights are read again, not kept.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @lora.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x8xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@w] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@a] : tensor<8x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.use [@b] : tensor<64x8xf32>
// CHECK-NEXT:   %[[Y:.+]], %[[U:.+]] = tfm.lora_linear %[[ARG0]], %[[V0]], %[[V1]], %[[V2]] {adapted = array<i1: true>, parts = array<i64: 64>, scale = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>, tensor<8x64xf32>, tensor<64x8xf32>
// CHECK-NEXT:   tfm.return %[[Y]], %[[U]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x8xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @lora.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x8xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@w] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@a] : tensor<8x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.use [@b] : tensor<64x8xf32>
// CHECK-NEXT:   %[[DX:.+]], %[[DA:.+]], %[[DB:.+]] = tfm.lora_linear_grad %[[ARG0]], %[[ARG2]], %[[ARG1]], %[[V0]], %[[V1]], %[[V2]] {adapted = array<i1: true>, parts = array<i64: 64>, scale = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x8xf32, #dims_T_>, tensor<64x64xf32>, tensor<8x64xf32>, tensor<64x8xf32>
// CHECK-NEXT:   tfm.accumulate [@b], %[[DB]] : tensor<64x8xf32>
// CHECK-NEXT:   tfm.accumulate [@a], %[[DA]] : tensor<8x64xf32>
// CHECK-NEXT:   tfm.return %[[DX]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @w per_layer : !w {hf = "w.{layer}"}
  tfm.param @a per_layer : tensor<8x64xf32> {init = "zeros", trainable}
  tfm.param @b per_layer : tensor<64x8xf32> {init = "zeros", trainable}
  tfm.layer @lora(%x: !x) -> !x {
    %w = tfm.use [@w] : !w
    %a = tfm.use [@a] : tensor<8x64xf32>
    %b = tfm.use [@b] : tensor<64x8xf32>
    %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>}
      : !x, !w, tensor<8x64xf32>, tensor<64x8xf32>
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids) {
    %y = tfm.stack(%x) kinds = [@lora] {layers = array<i32: 0>} : !x -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.lora_linear with a trainable weight: its gradient is a product beside.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @lora_full.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x8xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@w] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@a] : tensor<8x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.use [@b] : tensor<64x8xf32>
// CHECK-NEXT:   %[[Y:.+]], %[[U:.+]] = tfm.lora_linear %[[ARG0]], %[[V0]], %[[V1]], %[[V2]] {adapted = array<i1: true>, parts = array<i64: 64>, scale = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>, tensor<8x64xf32>, tensor<64x8xf32>
// CHECK-NEXT:   tfm.return %[[Y]], %[[U]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x8xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @lora_full.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x8xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@w] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@a] : tensor<8x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.use [@b] : tensor<64x8xf32>
// CHECK-NEXT:   %[[DX:.+]], %[[DA:.+]], %[[DB:.+]] = tfm.lora_linear_grad %[[ARG0]], %[[ARG2]], %[[ARG1]], %[[V0]], %[[V1]], %[[V2]] {adapted = array<i1: true>, parts = array<i64: 64>, scale = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x8xf32, #dims_T_>, tensor<64x64xf32>, tensor<8x64xf32>, tensor<64x8xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.matmul %[[ARG0]], %[[ARG2]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@w], %[[V3]] : tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[DX]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @w per_layer : !w {hf = "w.{layer}", trainable}
  tfm.param @a per_layer : tensor<8x64xf32> {init = "zeros"}
  tfm.param @b per_layer : tensor<64x8xf32> {init = "zeros"}
  tfm.layer @lora_full(%x: !x) -> !x {
    %w = tfm.use [@w] : !w
    %a = tfm.use [@a] : tensor<8x64xf32>
    %b = tfm.use [@b] : tensor<64x8xf32>
    %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>}
      : !x, !w, tensor<8x64xf32>, tensor<64x8xf32>
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids) {
    %y = tfm.stack(%x) kinds = [@lora_full] {layers = array<i32: 0>} : !x -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.rms_norm with a trainable weight.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @norm.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128xf32, #dims_T>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@n] : tensor<64xf32>
// CHECK-NEXT:   %[[Y:.+]], %[[RSTD:.+]] = tfm.rms_norm %[[ARG0]], %[[V0]] {eps = 1.000000e-05 : f64} : tensor<128x64xf32, #dims_T_>, tensor<64xf32>
// CHECK-NEXT:   tfm.return %[[Y]], %[[RSTD]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128xf32, #dims_T>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @norm.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128xf32, #dims_T>, %[[ARG2:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@n] : tensor<64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.rms_norm_grad %[[ARG0]], %[[ARG2]], %[[V0]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<64xf32>, tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V2:.+]] = tfm.rms_norm_weight_grad %[[ARG0]], %[[ARG2]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128xf32, #dims_T>
// CHECK-NEXT:   tfm.accumulate [@n], %[[V2]] : tensor<64xf32>
// CHECK-NEXT:   tfm.return %[[V1]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @n per_layer : tensor<64xf32> {hf = "n.{layer}", trainable}
  tfm.layer @norm(%x: !x) -> !x {
    %n = tfm.use [@n] : tensor<64xf32>
    %y, %rstd = tfm.rms_norm %x, %n {eps = 1.0e-5} : !x, tensor<64xf32>
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids) {
    %y = tfm.stack(%x) kinds = [@norm] {layers = array<i32: 0>} : !x -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.add_rms_norm: the gradients of the sum and of the norm meet in both inputs.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @add_norm.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128xf32, #dims_T>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@n] : tensor<64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.silu %[[ARG0]] : tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[SUM:.+]], %[[Y:.+]], %[[RSTD:.+]] = tfm.add_rms_norm %[[ARG0]], %[[V1]], %[[V0]] {eps = 1.000000e-05 : f64} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.mul %[[SUM]], %[[Y]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V2]], %[[Y]], %[[SUM]], %[[RSTD]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128xf32, #dims_T>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @add_norm.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG3:.+]]: tensor<128xf32, #dims_T>, %[[ARG4:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@n] : tensor<64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.mul %[[ARG0]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V2:.+]] = tfm.mul %[[ARG0]], %[[ARG2]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V3:.+]] = tfm.rms_norm_grad %[[V2]], %[[ARG2]], %[[V0]], %[[ARG3]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<64xf32>, tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V4:.+]] = tfm.add %[[V1]], %[[V3]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V5:.+]] = tfm.add %[[V1]], %[[V3]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V6:.+]] = tfm.rms_norm_weight_grad %[[V2]], %[[ARG2]], %[[ARG3]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V7:.+]] = tfm.silu_grad %[[V5]], %[[ARG4]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V8:.+]] = tfm.add %[[V4]], %[[V7]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@n], %[[V6]] : tensor<64xf32>
// CHECK-NEXT:   tfm.return %[[V8]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @n per_layer : tensor<64xf32> {hf = "n.{layer}", trainable}
  tfm.layer @add_norm(%x: !x) -> !x {
    %n = tfm.use [@n] : tensor<64xf32>
    %s = tfm.silu %x : !x
    %sum, %h, %rstd = tfm.add_rms_norm %x, %s, %n {eps = 1.0e-5} : !x, !x, tensor<64xf32>
    %y = tfm.mul %sum, %h : !x, !x
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids) {
    %y = tfm.stack(%x) kinds = [@add_norm] {layers = array<i32: 0>} : !x -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.rope turns back; the table is shared and not kept. tfm.scale scales.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @rope.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x16xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.rope %[[V1]], %[[ARG1]] {heads = 4 : i64} : tensor<128x64xf32, #dims_T_>, tensor<128x16xf32, #dims_T_>
// CHECK-NEXT:   %[[V3:.+]] = tfm.scale %[[V2]] {factor = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V3]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @rope.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128x16xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.scale %[[ARG0]] {factor = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V2:.+]] = tfm.rope %[[V1]], %[[ARG2]] {heads = 4 : i64, inverse} : tensor<128x64xf32, #dims_T_>, tensor<128x16xf32, #dims_T_>
// CHECK-NEXT:   %[[V3:.+]] = tfm.matmul %[[V2]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.matmul %[[V2]], %[[ARG1]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@p], %[[V4]] : tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V3]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @p per_layer : !w {hf = "p.{layer}", trainable}
  tfm.layer @rope(%x: !x, %rope: tensor<128x16xf32, #tfm.dims<"T", "">>) -> !x {
    %p = tfm.use [@p] : !w
    %h = tfm.linear %x, %p : !x, !w
    %r = tfm.rope %h, %rope {heads = 4 : i64} : !x, tensor<128x16xf32, #tfm.dims<"T", "">>
    %y = tfm.scale %r {factor = 2.0} : !x
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids, %rope: tensor<128x16xf32, #tfm.dims<"T", "">>) {
    %y = tfm.stack(%x) shared(%rope) kinds = [@rope] {layers = array<i32: 0>} : !x, tensor<128x16xf32, #tfm.dims<"T", "">> -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.attention keeps o and lse; the window and the scale go along.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @attention.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128xi32, #dims_T>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x4xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[O:.+]], %[[LSE:.+]] = tfm.attention(%[[V1]], %[[V1]], %[[ARG0]]) %[[ARG1]] {heads = 4 : i64, kv_heads = 4 : i64, scale = 5.000000e-01 : f64, window = 32 : i64} : (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>), tensor<128xi32, #dims_T>
// CHECK-NEXT:   tfm.return %[[O]], %[[V1]], %[[ARG0]], %[[LSE]], %[[O]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x4xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @attention.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG3:.+]]: tensor<128x4xf32, #dims_T_>, %[[ARG4:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG5:.+]]: tensor<128xi32, #dims_T>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]]:3 = tfm.attention_grad(%[[ARG1]], %[[ARG1]], %[[ARG2]]) %[[ARG0]], %[[ARG4]], %[[ARG3]], %[[ARG5]] {heads = 4 : i64, kv_heads = 4 : i64, scale = 5.000000e-01 : f64, window = 32 : i64} : (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>), tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x4xf32, #dims_T_>, tensor<128xi32, #dims_T>
// CHECK-NEXT:   %[[V2:.+]] = tfm.add %[[V1]]#0, %[[V1]]#1 : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V3:.+]] = tfm.matmul %[[V2]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.add %[[V1]]#2, %[[V3]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V5:.+]] = tfm.matmul %[[V2]], %[[ARG2]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@p], %[[V5]] : tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V4]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @p per_layer : !w {hf = "p.{layer}", trainable}
  tfm.layer @attention(%x: !x, %s: !ids) -> !x {
    %p = tfm.use [@p] : !w
    %h = tfm.linear %x, %p : !x, !w
    %y, %lse = tfm.attention(%h, %h, %x) %s {heads = 4 : i64, kv_heads = 4 : i64, window = 32 : i64, scale = 0.5} : (!x, !x, !x), !ids
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids, %s: !ids) {
    %y = tfm.stack(%x) shared(%s) kinds = [@attention] {layers = array<i32: 0>} : !x, !ids -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.attention, joined.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @attention_joined.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128xi32, #dims_T>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x128xf32, #dims_T_>, tensor<128x4xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<128x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32>
// CHECK-NEXT:   %[[O:.+]], %[[LSE:.+]] = tfm.attention(%[[V1]]) %[[ARG1]] {heads = 4 : i64, kv_heads = 2 : i64} : (tensor<128x128xf32, #dims_T_>), tensor<128xi32, #dims_T>
// CHECK-NEXT:   tfm.return %[[O]], %[[V1]], %[[LSE]], %[[O]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x128xf32, #dims_T_>, tensor<128x4xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @attention_joined.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x128xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128x4xf32, #dims_T_>, %[[ARG3:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG4:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG5:.+]]: tensor<128xi32, #dims_T>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<128x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.attention_grad(%[[ARG1]]) %[[ARG0]], %[[ARG3]], %[[ARG2]], %[[ARG5]] {heads = 4 : i64, kv_heads = 2 : i64} : (tensor<128x128xf32, #dims_T_>), tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x4xf32, #dims_T_>, tensor<128xi32, #dims_T>
// CHECK-NEXT:   %[[V2:.+]] = tfm.matmul %[[V1]], %[[V0]] : tensor<128x128xf32, #dims_T_>, tensor<128x64xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.matmul %[[V1]], %[[ARG4]] {trans_a} : tensor<128x128xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@p], %[[V3]] : tensor<128x64xf32>
// CHECK-NEXT:   tfm.return %[[V2]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @p per_layer : tensor<128x64xf32> {hf = "p.{layer}", trainable}
  tfm.layer @attention_joined(%x: !x, %s: !ids) -> !x {
    %p = tfm.use [@p] : tensor<128x64xf32>
    %h = tfm.linear %x, %p : !x, tensor<128x64xf32>
    %y, %lse = tfm.attention(%h) %s {heads = 4 : i64, kv_heads = 2 : i64} : (tensor<128x128xf32, #tfm.dims<"T", "">>), !ids
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids, %s: !ids) {
    %y = tfm.stack(%x) shared(%s) kinds = [@attention_joined] {layers = array<i32: 0>} : !x, !ids -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.gated_silu, its operands apart; tfm.silu; tfm.add passes a gradient on.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @gate.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.gated_silu %[[V1]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V3:.+]] = tfm.silu %[[V2]] : tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V4:.+]] = tfm.add %[[V3]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V4]], %[[V2]], %[[V1]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @gate.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG3:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.silu_grad %[[ARG0]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V2:.+]]:2 = tfm.gated_silu_grad %[[V1]], %[[ARG2]], %[[ARG3]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V3:.+]] = tfm.add %[[ARG0]], %[[V2]]#1 : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V4:.+]] = tfm.matmul %[[V2]]#0, %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V5:.+]] = tfm.add %[[V3]], %[[V4]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V6:.+]] = tfm.matmul %[[V2]]#0, %[[ARG3]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@p], %[[V6]] : tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V5]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @p per_layer : !w {hf = "p.{layer}", trainable}
  tfm.layer @gate(%x: !x) -> !x {
    %p = tfm.use [@p] : !w
    %h = tfm.linear %x, %p : !x, !w
    %g = tfm.gated_silu %h, %x : !x, !x
    %a = tfm.silu %g : !x
    %y = tfm.add %a, %x : !x, !x
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids) {
    %y = tfm.stack(%x) kinds = [@gate] {layers = array<i32: 0>} : !x -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.gated_silu, joined.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @gate_joined.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x128xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<128x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.gated_silu %[[V1]] : tensor<128x128xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V2]], %[[V1]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x128xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @gate_joined.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x128xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<128x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.gated_silu_grad %[[ARG0]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128x128xf32, #dims_T_>
// CHECK-NEXT:   %[[V2:.+]] = tfm.matmul %[[V1]], %[[V0]] : tensor<128x128xf32, #dims_T_>, tensor<128x64xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.matmul %[[V1]], %[[ARG2]] {trans_a} : tensor<128x128xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@p], %[[V3]] : tensor<128x64xf32>
// CHECK-NEXT:   tfm.return %[[V2]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @p per_layer : tensor<128x64xf32> {hf = "p.{layer}", trainable}
  tfm.layer @gate_joined(%x: !x) -> !x {
    %p = tfm.use [@p] : tensor<128x64xf32>
    %h = tfm.linear %x, %p : !x, tensor<128x64xf32>
    %y = tfm.gated_silu %h : tensor<128x128xf32, #tfm.dims<"T", "">>
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids) {
    %y = tfm.stack(%x) kinds = [@gate_joined] {layers = array<i32: 0>} : !x -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.mul of a value with itself: both halves are added.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @square.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.mul %[[V1]], %[[V1]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V2]], %[[V1]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @square.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.mul %[[ARG0]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V2:.+]] = tfm.mul %[[ARG0]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V3:.+]] = tfm.add %[[V1]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V4:.+]] = tfm.matmul %[[V3]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V5:.+]] = tfm.matmul %[[V3]], %[[ARG2]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@p], %[[V5]] : tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V4]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @p per_layer : !w {hf = "p.{layer}", trainable}
  tfm.layer @square(%x: !x) -> !x {
    %p = tfm.use [@p] : !w
    %h = tfm.linear %x, %p : !x, !w
    %y = tfm.mul %h, %h : !x, !x
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids) {
    %y = tfm.stack(%x) kinds = [@square] {layers = array<i32: 0>} : !x -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.matmul, with each operand transposed or not.
!ids = tensor<128xi32, #tfm.dims<"T">>
!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @products.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>, tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.matmul %[[V1]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.matmul %[[V2]], %[[V0]] {trans_b} : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.matmul %[[V3]], %[[V3]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V5:.+]] = tfm.matmul %[[V4]], %[[V4]] {trans_a, trans_b} : tensor<64x64xf32>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V6:.+]] = tfm.matmul %[[ARG0]], %[[V5]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V6]], %[[V5]], %[[ARG0]], %[[V4]], %[[V3]], %[[V2]], %[[V1]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>, tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @products.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<64x64xf32>, %[[ARG2:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG3:.+]]: tensor<64x64xf32>, %[[ARG4:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG5:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG6:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@p] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.matmul %[[ARG0]], %[[ARG1]] {trans_b} : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.matmul %[[ARG2]], %[[ARG0]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V3:.+]] = tfm.matmul %[[ARG3]], %[[V2]] {trans_a, trans_b} : tensor<64x64xf32>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.matmul %[[V2]], %[[ARG3]] {trans_a, trans_b} : tensor<64x64xf32>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V5:.+]] = tfm.add %[[V3]], %[[V4]] : tensor<64x64xf32>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V6:.+]] = tfm.matmul %[[ARG4]], %[[V5]] {trans_b} : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V7:.+]] = tfm.matmul %[[ARG4]], %[[V5]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V8:.+]] = tfm.add %[[V6]], %[[V7]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V9:.+]] = tfm.matmul %[[V8]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V10:.+]] = tfm.matmul %[[V8]], %[[ARG5]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V11:.+]] = tfm.matmul %[[V9]], %[[V0]] {trans_b} : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V12:.+]] = tfm.matmul %[[ARG6]], %[[V9]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V13:.+]] = tfm.add %[[V10]], %[[V12]] : tensor<64x64xf32>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V14:.+]] = tfm.matmul %[[V11]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V15:.+]] = tfm.add %[[V1]], %[[V14]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V16:.+]] = tfm.matmul %[[V11]], %[[ARG2]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V17:.+]] = tfm.add %[[V13]], %[[V16]] : tensor<64x64xf32>, tensor<64x64xf32>
// CHECK-NEXT:   tfm.accumulate [@p], %[[V17]] : tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V15]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @p per_layer : !w {hf = "p.{layer}", trainable}
  tfm.layer @products(%x: !x) -> !x {
    %p = tfm.use [@p] : !w
    %h = tfm.linear %x, %p : !x, !w
    %0 = tfm.matmul %h, %p : !x, !w
    %1 = tfm.matmul %0, %p {trans_b} : !x, !w
    %2 = tfm.matmul %1, %1 {trans_a} : !x, !x
    %3 = tfm.matmul %2, %2 {trans_a, trans_b} : !w, !w
    %y = tfm.matmul %x, %3 : !x, !w
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids) {
    %y = tfm.stack(%x) kinds = [@products] {layers = array<i32: 0>} : !x -> !x
    %l, %u = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : !t
    tfm.return
  }
}

// -----

// tfm.embedding, and what lies below the lowest trainable parameter of a
// function: nothing is propagated into the frozen product.
!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.func @micro_step(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128xi32, #dims_T>) {
// CHECK-NEXT:   %[[Y:.+]], %[[SAVED:.+]] = tfm.stack(%[[ARG0]]) kinds = [@products.forward] {layers = array<i32: 0>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>, !tfm.saved
// CHECK-NEXT:   %[[LOSS:.+]], %[[LSE:.+]] = tfm.cross_entropy %[[Y]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T>
// CHECK-NEXT:   tfm.report_loss %[[LOSS]] {weight = "loss_weight"} : tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V0:.+]] = tfm.splat {scalar = "loss_weight"} : tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V1:.+]] = tfm.cross_entropy_grad %[[Y]], %[[ARG1]], %[[LSE]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T>, tensor<128xf32, #dims_T>, tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V2:.+]] = tfm.stack_grad(%[[V1]]) saved(%[[SAVED]]) kinds = [@products.backward] {layers = array<i32: 0>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return
tfm.architecture @m {
  tfm.param @table : tensor<384x64xf32> {hf = "t", trainable}
  tfm.param @frozen : tensor<384x64xf32> {hf = "u"}
  tfm.param @w : !w {hf = "w"}
  tfm.func @micro_step(%ids: !ids) {
    %t = tfm.use [@table] : tensor<384x64xf32>
    %u = tfm.use [@frozen] : tensor<384x64xf32>
    %w = tfm.use [@w] : !w
    %x = tfm.embedding %ids, %t : !ids, tensor<384x64xf32>
    %z = tfm.embedding %ids, %u : !ids, tensor<384x64xf32>
    %z1 = tfm.linear %z, %w : !x, !w
    %y = tfm.add %x, %z1 : !x, !x
    %l, %lse = tfm.cross_entropy %y, %ids : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : tensor<128xf32, #tfm.dims<"T">>
    tfm.return
  }
}

// -----

// A frozen stack above which something is trained has no backward pass.
!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// CHECK-LABEL: tfm.layer @k(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@w] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V1]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.func @micro_step(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128xi32, #dims_T>) {
// CHECK-NEXT:   %[[Y:.+]] = tfm.stack(%[[ARG0]]) kinds = [@k] {layers = array<i32: 0>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@head] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[Y]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[LOSS:.+]], %[[LSE:.+]] = tfm.cross_entropy %[[V1]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T>
// CHECK-NEXT:   tfm.report_loss %[[LOSS]] {weight = "loss_weight"} : tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V2:.+]] = tfm.splat {scalar = "loss_weight"} : tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V3:.+]] = tfm.cross_entropy_grad %[[V1]], %[[ARG1]], %[[LSE]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T>, tensor<128xf32, #dims_T>, tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V4:.+]] = tfm.matmul %[[V3]], %[[Y]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@head], %[[V4]] : tensor<64x64xf32>
// CHECK-NEXT:   tfm.return
tfm.architecture @m {
  tfm.param @w per_layer : !w {hf = "w.{layer}"}
  tfm.param @head : !w {hf = "h", trainable}
  tfm.layer @k(%x: !x) -> !x {
    %w = tfm.use [@w] : !w
    %y = tfm.linear %x, %w : !x, !w
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %ids: !ids) {
    %y = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0>} : !x -> !x
    %h = tfm.use [@head] : !w
    %z = tfm.linear %y, %h : !x, !w
    %l, %lse = tfm.cross_entropy %z, %ids : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : tensor<128xf32, #tfm.dims<"T">>
    tfm.return
  }
}

// -----

// The gradient of a cast is in the operand's type. That of a weight is f32 already
// and passes; products of bf16 that are gradients of weights are f32.
!x = tensor<128x64xbf16, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>
!w16 = tensor<64x64xbf16>

// CHECK-LABEL: tfm.func @micro_step(
// CHECK: %[[DY:.+]] = tfm.scale %{{.+}} {factor = 2.000000e+00 : f64} : tensor<128xf32, #dims_T>
// CHECK: %[[DY16:.+]] = tfm.cast %{{.+}} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xbf16, #dims_T_>
// CHECK: %[[DW:.+]] = tfm.matmul %[[DY16]], %{{.+}} {sum, trans_a} : tensor<128x64xbf16, #dims_T_>, tensor<128x64xbf16, #dims_T_>
// CHECK-NEXT: tfm.accumulate [@w], %[[DW]] : tensor<64x64xf32>
tfm.architecture @casts {
  tfm.param @w : !w {hf = "w", trainable}
  tfm.func @micro_step(%x: !x, %t: tensor<128xi32, #tfm.dims<"T">>) {
    %w = tfm.use [@w] : !w
    %w16 = tfm.cast %w : !w -> !w16
    %y = tfm.linear %x, %w16 : !x, !w16
    %y32 = tfm.cast %y : !x -> tensor<128x64xf32, #tfm.dims<"T", "">>
    %loss, %lse = tfm.cross_entropy %y32, %t : tensor<128x64xf32, #tfm.dims<"T", "">>, tensor<128xi32, #tfm.dims<"T">>
    %half = tfm.scale %loss {factor = 2.0} : tensor<128xf32, #tfm.dims<"T">>
    tfm.report_loss %half {weight = "loss_weight"} : tensor<128xf32, #tfm.dims<"T">>
    tfm.return
  }
}
