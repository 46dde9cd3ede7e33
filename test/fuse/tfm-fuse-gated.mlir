// RUN: %opt %s --tfm-fuse-gated | FileCheck %s

!f = tensor<128x64xf32, #tfm.dims<"T", "">>

// CHECK-LABEL: tfm.func @left(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.gated_silu %[[ARG0]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V0]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.func @right(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.gated_silu %[[ARG0]], %[[ARG1]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V0]] : tensor<128x64xf32, #dims_T_>
tfm.func @left(%gate: !f, %up: !f) -> !f {
  %a = tfm.silu %gate : !f
  %h = tfm.mul %a, %up : !f, !f
  tfm.return %h : !f
}

// The product commutes: gate and up keep their places.
tfm.func @right(%gate: !f, %up: !f) -> !f {
  %a = tfm.silu %gate : !f
  %h = tfm.mul %up, %a : !f, !f
  tfm.return %h : !f
}

// CHECK-LABEL: tfm.func @no_activation
// CHECK-NOT: gated_silu
tfm.func @no_activation(%gate: !f, %up: !f) -> !f {
  %h = tfm.mul %gate, %up : !f, !f
  tfm.return %h : !f
}

// CHECK-LABEL: tfm.func @second_use
// CHECK-NOT: gated_silu
tfm.func @second_use(%gate: !f, %up: !f) -> (!f, !f) {
  %a = tfm.silu %gate : !f
  %h = tfm.mul %a, %up : !f, !f
  tfm.return %h, %a : !f, !f
}

// silu(x)^2 uses the activation twice.
// CHECK-LABEL: tfm.func @square
// CHECK-NOT: gated_silu
tfm.func @square(%gate: !f) -> !f {
  %a = tfm.silu %gate : !f
  %h = tfm.mul %a, %a : !f, !f
  tfm.return %h : !f
}
