// RUN: %opt %s --tfm-autodiff --tfm-insert-optimizer=rule=sgd --tfm-verify-grad | FileCheck %s
// Both residual plans give kinds that agree.
// RUN: %opt %s --tfm-autodiff --tfm-plan-residuals=mode=block --tfm-insert-optimizer=rule=sgd --tfm-verify-grad | FileCheck %s

!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>

// CHECK-LABEL: tfm.architecture @m
tfm.architecture @m {
  tfm.param @w per_layer : tensor<64x64xf32> {hf = "w.{layer}", trainable}
  tfm.param @f per_layer : tensor<64x64xf32> {hf = "f.{layer}"}
  tfm.layer @k(%x: !x) -> !x {
    %w = tfm.use [@w] : tensor<64x64xf32>
    %f = tfm.use [@f] : tensor<64x64xf32>
    %y = tfm.linear %x, %w : !x, tensor<64x64xf32>
    %s = tfm.silu %y : !x
    %z = tfm.linear %s, %f : !x, tensor<64x64xf32>
    tfm.return %z : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids) {
    %y = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0, 0>} : !x -> !x
    %l, %lse = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : tensor<128xf32, #tfm.dims<"T">>
    tfm.return
  }
}
