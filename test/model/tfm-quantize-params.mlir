// RUN: %opt %s --tfm-quantize-params | FileCheck %s
// RUN: %opt %s --tfm-quantize-params='scheme="!qt.fp4<block = 32, scale = f32>"' | FileCheck %s --check-prefix=FP4

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

tfm.architecture @m {
  // CHECK: tfm.param @q per_layer : tensor<64x64x!qt.nf4<block = 64, scale = dq<256>>> {hf = "q.{layer}"}
  // FP4: tfm.param @q per_layer : tensor<64x64x!qt.fp4<block = 32, scale = f32>> {hf = "q.{layer}"}
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  // Adapters, norms, and what is not per layer stay.
  // CHECK-NEXT: tfm.param @a per_layer : tensor<64x64xf32>
  tfm.param @a per_layer : !w {hf = "a.{layer}", init = "zeros", trainable}
  // CHECK-NEXT: tfm.param @n per_layer : tensor<64xf32>
  tfm.param @n per_layer : tensor<64xf32> {hf = "n.{layer}"}
  // CHECK-NEXT: tfm.param @head : tensor<64x64xf32>
  tfm.param @head : !w {hf = "head"}
// CHECK-LABEL: tfm.layer @block(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@n] : tensor<64xf32>
// CHECK-NEXT:   %[[Y:.+]], %[[RSTD:.+]] = tfm.rms_norm %[[ARG0]], %[[V0]] {eps = 1.000000e-05 : f64} : tensor<128x64xf32, #dims_T_>, tensor<64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@q] : tensor<64x64x!qt.nf4<block = 64, scale = dq<256>>>
// CHECK-NEXT:   %[[V2:.+]] = tfm.linear %[[Y]], %[[V1]] : tensor<128x64xf32, #dims_T_>, tensor<64x64x!qt.nf4<block = 64, scale = dq<256>>>
// CHECK-NEXT:   %[[V3:.+]] = tfm.use [@a] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.linear %[[V2]], %[[V3]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   tfm.return %[[V4]] : tensor<128x64xf32, #dims_T_>
  tfm.layer @block(%x: !x) -> !x {
    %n = tfm.use [@n] : tensor<64xf32>
    %h, %rstd = tfm.rms_norm %x, %n {eps = 1.0e-5} : !x, tensor<64xf32>
    %q = tfm.use [@q] : !w
    %y = tfm.linear %h, %q : !x, !w
    %a = tfm.use [@a] : !w
    %z = tfm.linear %y, %a : !x, !w
    tfm.return %z : !x
  }
  // CHECK-LABEL: tfm.func @head_func
  // CHECK-NEXT: tfm.use [@head] : tensor<64x64xf32>
  tfm.func @head_func(%x: !x) -> !x {
    %w = tfm.use [@head] : !w
    %y = tfm.linear %x, %w : !x, !w
    tfm.return %y : !x
  }
}
