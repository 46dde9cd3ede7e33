// RUN: %opt %s --tfm-autodiff --tfm-plan-residuals=mode=block | FileCheck %s
// RUN: %opt %s --tfm-autodiff --tfm-plan-residuals=mode=none | FileCheck %s --check-prefix=NONE
// RUN: %opt %s --tfm-autodiff | FileCheck %s --check-prefix=NONE

// NONE-LABEL: tfm.layer @block.forward
// NONE: %[[GATE:.+]] = tfm.linear %arg0, %{{.+}} : tensor<128x64xf32, #dims_T_>, tensor<96x64xf32>
// NONE: %[[UP:.+]] = tfm.linear %arg0, %{{.+}} : tensor<128x64xf32, #dims_T_>, tensor<96x64xf32>
// NONE: %[[GATED:.+]] = tfm.gated_silu %[[GATE]], %[[UP]]
// NONE: tfm.return %{{.*}}, %[[GATED]], %[[GATE]], %[[UP]] :
// NONE-LABEL: tfm.layer @block.backward
// NONE-NOT: tfm.gated_silu %

// With blocks a forward kind keeps its input alone. The backward kind computes
// again what it reads: gate and up and the gated product, but not the down
// projection, whose result nothing in the backward pass reads. A parameter is read
// once for both.
// CHECK-LABEL: tfm.layer @block.forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128xi32, #dims_T>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@gate] : tensor<96x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@up] : tensor<96x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.use [@down] : tensor<64x96xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<96x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.linear %[[ARG0]], %[[V1]] : tensor<128x64xf32, #dims_T_>, tensor<96x64xf32>
// CHECK-NEXT:   %[[V5:.+]] = tfm.gated_silu %[[V3]], %[[V4]] : tensor<128x96xf32, #dims_T_>, tensor<128x96xf32, #dims_T_>
// CHECK-NEXT:   %[[V6:.+]] = tfm.linear %[[V5]], %[[V2]] : tensor<128x96xf32, #dims_T_>, tensor<64x96xf32>
// CHECK-NEXT:   %[[V7:.+]] = tfm.add %[[ARG0]], %[[V6]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V7]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @block.backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128xi32, #dims_T>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@gate] : tensor<96x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@up] : tensor<96x64xf32>
// CHECK-NEXT:   %[[V7:.+]] = tfm.use [@down] : tensor<64x96xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.linear %[[ARG1]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<96x64xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.linear %[[ARG1]], %[[V1]] : tensor<128x64xf32, #dims_T_>, tensor<96x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.gated_silu %[[V2]], %[[V3]] : tensor<128x96xf32, #dims_T_>, tensor<128x96xf32, #dims_T_>
// CHECK-NEXT:   %[[V8:.+]] = tfm.matmul %[[ARG0]], %[[V7]] : tensor<128x64xf32, #dims_T_>, tensor<64x96xf32>
// CHECK-NEXT:   %[[V9:.+]] = tfm.matmul %[[ARG0]], %[[V4]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x96xf32, #dims_T_>
// CHECK-NEXT:   %[[V10:.+]]:2 = tfm.gated_silu_grad %[[V8]], %[[V2]], %[[V3]] : tensor<128x96xf32, #dims_T_>, tensor<128x96xf32, #dims_T_>, tensor<128x96xf32, #dims_T_>
// CHECK-NEXT:   %[[V11:.+]] = tfm.matmul %[[V10]]#1, %[[V1]] : tensor<128x96xf32, #dims_T_>, tensor<96x64xf32>
// CHECK-NEXT:   %[[V12:.+]] = tfm.add %[[ARG0]], %[[V11]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V13:.+]] = tfm.matmul %[[V10]]#0, %[[V0]] : tensor<128x96xf32, #dims_T_>, tensor<96x64xf32>
// CHECK-NEXT:   %[[V14:.+]] = tfm.add %[[V12]], %[[V13]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@down], %[[V9]] : tensor<64x96xf32>
// CHECK-NEXT:   tfm.return %[[V14]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.func @micro_step(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128xi32, #dims_T>) {
// CHECK-NEXT:   %[[Y:.+]], %[[SAVED:.+]] = tfm.stack(%[[ARG0]]) shared(%[[ARG1]]) kinds = [@block.forward] {layers = array<i32: 0, 0>} : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T> -> tensor<128x64xf32, #dims_T_>, !tfm.saved
// CHECK-NEXT:   %[[LOSS:.+]], %[[LSE:.+]] = tfm.cross_entropy %[[Y]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T>
// CHECK-NEXT:   tfm.report_loss %[[LOSS]] {weight = "loss_weight"} : tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V0:.+]] = tfm.splat {scalar = "loss_weight"} : tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V1:.+]] = tfm.cross_entropy_grad %[[Y]], %[[ARG1]], %[[LSE]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T>, tensor<128xf32, #dims_T>, tensor<128xf32, #dims_T>
// CHECK-NEXT:   %[[V2:.+]] = tfm.stack_grad(%[[V1]]) saved(%[[SAVED]]) shared(%[[ARG1]]) kinds = [@block.backward] {layers = array<i32: 0, 0>} : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_T> -> tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return
!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!f = tensor<128x96xf32, #tfm.dims<"T", "">>

tfm.architecture @m {
  tfm.param @gate per_layer : tensor<96x64xf32> {hf = "g.{layer}"}
  tfm.param @up per_layer : tensor<96x64xf32> {hf = "u.{layer}"}
  tfm.param @down per_layer : tensor<64x96xf32> {hf = "d.{layer}", trainable}
  tfm.layer @block(%x: !x, %s: !ids) -> !x {
    %gate = tfm.use [@gate] : tensor<96x64xf32>
    %up = tfm.use [@up] : tensor<96x64xf32>
    %down = tfm.use [@down] : tensor<64x96xf32>
    %g = tfm.linear %x, %gate : !x, tensor<96x64xf32>
    %u = tfm.linear %x, %up : !x, tensor<96x64xf32>
    %h = tfm.gated_silu %g, %u : !f, !f
    %d = tfm.linear %h, %down : !f, tensor<64x96xf32>
    %y = tfm.add %x, %d : !x, !x
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x, %t: !ids) {
    %y = tfm.stack(%x) shared(%t) kinds = [@block] {layers = array<i32: 0, 0>} : !x, !ids -> !x
    %l, %lse = tfm.cross_entropy %y, %t : !x, !ids
    tfm.report_loss %l {weight = "loss_weight"} : tensor<128xf32, #tfm.dims<"T">>
    tfm.return
  }
}
