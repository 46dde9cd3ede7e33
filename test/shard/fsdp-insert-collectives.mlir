// RUN: %opt %s --fsdp-insert-collectives | FileCheck %s

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// A unit is gathered once in a function however many of its parameters are used,
// gathers start before the first is waited for, all are released at the end.
// The backward kind reduces what it added to, after its last use.
// CHECK-LABEL: tfm.layer @forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.all_gather_start @base
// CHECK-NEXT:   %[[V1:.+]] = fsdp.all_gather_start @trained
// CHECK-NEXT:   %[[V2:.+]] = fsdp.wait %[[V0]]
// CHECK-NEXT:   %[[V3:.+]] = fsdp.view %[[V2]] [@q] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = fsdp.view %[[V2]] [@k] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V5:.+]] = fsdp.wait %[[V1]]
// CHECK-NEXT:   %[[V6:.+]] = fsdp.view %[[V5]] [@a] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V7:.+]] = tfm.linear %[[ARG0]], %[[V3]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V8:.+]] = tfm.linear %[[V7]], %[[V6]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V9:.+]] = tfm.linear %[[V8]], %[[V4]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   fsdp.release %[[V2]]
// CHECK-NEXT:   fsdp.release %[[V5]]
// CHECK-NEXT:   tfm.return %[[V9]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.all_gather_start @base
// CHECK-NEXT:   %[[V1:.+]] = fsdp.all_gather_start @trained
// CHECK-NEXT:   %[[V2:.+]] = fsdp.wait %[[V0]]
// CHECK-NEXT:   %[[V3:.+]] = fsdp.view %[[V2]] [@q] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = fsdp.wait %[[V1]]
// CHECK-NEXT:   %[[V5:.+]] = fsdp.view %[[V4]] [@a] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V6:.+]] = tfm.matmul %[[ARG0]], %[[ARG1]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.accumulate [@a], %[[V6]] : tensor<64x64xf32>
// CHECK-NEXT:   %[[V7:.+]] = tfm.matmul %[[ARG0]], %[[V5]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   %[[V8:.+]] = tfm.matmul %[[V7]], %[[V3]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// CHECK-NEXT:   fsdp.release %[[V2]]
// CHECK-NEXT:   fsdp.release %[[V4]]
// CHECK-NEXT:   fsdp.reduce_scatter_start @trained
// CHECK-NEXT:   tfm.return %[[V8]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.func @nothing(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   tfm.return %[[ARG0]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  tfm.param @k per_layer : !w {hf = "k.{layer}"}
  tfm.param @a per_layer : !w {hf = "a.{layer}", trainable}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @base [@q, @k] layers = [0, 1]
  fsdp.unit @trained [@a] layers = [0, 1] {trainable}
tfm.layer @forward(%x: !x) -> !x {
    %q = tfm.use [@q] : !w
    %y = tfm.linear %x, %q : !x, !w
    %a = tfm.use [@a] : !w
    %z = tfm.linear %y, %a : !x, !w
    %k = tfm.use [@k] : !w
    %z1 = tfm.linear %z, %k : !x, !w
    tfm.return %z1 : !x
  }
  tfm.layer @backward(%dy: !x, %y: !x) -> !x {
    %q = tfm.use [@q] : !w
    %a = tfm.use [@a] : !w
    %da = tfm.matmul %dy, %y {trans_a} : !x, !x
    tfm.accumulate [@a], %da : !w
    %d = tfm.matmul %dy, %a : !x, !w
    %dx = tfm.matmul %d, %q : !x, !w
    tfm.return %dx : !x
  }
  tfm.func @nothing(%x: !x) -> !x {
    tfm.return %x : !x
  }}
