// RUN: %opt %s --tfm-check-differentiable | FileCheck %s

// Operations without a rule are no concern where no trainable parameter reaches
// them, nor outside of @micro_step.
!x = tensor<128x64xf32, #tfm.dims<"T", "">>

// CHECK-LABEL: tfm.architecture @m
tfm.architecture @m {
  tfm.param @n per_layer : tensor<64xf32> {hf = "n.{layer}"}
  tfm.param @w per_layer : tensor<64x64xf32> {hf = "w.{layer}", trainable}
  tfm.layer @frozen(%x: !x) -> !x {
    %y = tfm.silu_grad %x, %x : !x, !x
    tfm.return %y : !x
  }
  tfm.layer @block(%x: !x) -> !x {
    %w = tfm.use [@w] : tensor<64x64xf32>
    %y = tfm.linear %x, %w : !x, tensor<64x64xf32>
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x) {
    %g = tfm.silu_grad %x, %x : !x, !x
    %0 = tfm.stack(%g) kinds = [@frozen] {layers = array<i32: 0>} : !x -> !x
    %1 = tfm.stack(%0) kinds = [@block] {layers = array<i32: 0>} : !x -> !x
    tfm.return
  }
  tfm.func @eval_step(%x: !x) {
    %1 = tfm.stack(%x) kinds = [@block] {layers = array<i32: 0>} : !x -> !x
    %g = tfm.silu_grad %1, %1 : !x, !x
    tfm.return
  }
}
