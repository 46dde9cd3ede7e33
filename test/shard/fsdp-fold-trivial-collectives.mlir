// RUN: sed s/RANKS/1/ %s | %opt --fsdp-insert-collectives --fsdp-fold-trivial-collectives | FileCheck %s --check-prefix=ONE
// RUN: sed s/RANKS/2/ %s | %opt --fsdp-insert-collectives -o %t.before
// RUN: sed s/RANKS/2/ %s | %opt --fsdp-insert-collectives --fsdp-fold-trivial-collectives -o %t.after
// RUN: diff %t.before %t.after

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// On a mesh of one nothing is left but where parameters lie; on a mesh of two
// the same input is not changed.
// ONE-LABEL: tfm.layer @forward(
// ONE-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ONE-NEXT:   %[[V0:.+]] = fsdp.local @base
// ONE-NEXT:   %[[V1:.+]] = fsdp.local @trained
// ONE-NEXT:   %[[V2:.+]] = fsdp.view %[[V0]] [@q] : tensor<64x64xf32>
// ONE-NEXT:   %[[V3:.+]] = fsdp.view %[[V0]] [@k] : tensor<64x64xf32>
// ONE-NEXT:   %[[V4:.+]] = fsdp.view %[[V1]] [@a] : tensor<64x64xf32>
// ONE-NEXT:   %[[V5:.+]] = tfm.linear %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   %[[V6:.+]] = tfm.linear %[[V5]], %[[V4]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   %[[V7:.+]] = tfm.linear %[[V6]], %[[V3]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   tfm.return %[[V7]] : tensor<128x64xf32, #dims_T_>
// ONE-LABEL: tfm.layer @backward(
// ONE-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ONE-NEXT:   %[[V0:.+]] = fsdp.local @base
// ONE-NEXT:   %[[V1:.+]] = fsdp.local @trained
// ONE-NEXT:   %[[V2:.+]] = fsdp.view %[[V0]] [@q] : tensor<64x64xf32>
// ONE-NEXT:   %[[V3:.+]] = fsdp.view %[[V1]] [@a] : tensor<64x64xf32>
// ONE-NEXT:   %[[V4:.+]] = tfm.matmul %[[ARG0]], %[[ARG1]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// ONE-NEXT:   tfm.accumulate [@a], %[[V4]] : tensor<64x64xf32>
// ONE-NEXT:   %[[V5:.+]] = tfm.matmul %[[ARG0]], %[[V3]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   %[[V6:.+]] = tfm.matmul %[[V5]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   tfm.return %[[V6]] : tensor<128x64xf32, #dims_T_>
// ONE-LABEL: tfm.func @nothing(
// ONE-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ONE-NEXT:   tfm.return %[[ARG0]] : tensor<128x64xf32, #dims_T_>
tfm.architecture @m {
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  tfm.param @k per_layer : !w {hf = "k.{layer}"}
  tfm.param @a per_layer : !w {hf = "a.{layer}", trainable}
  fsdp.mesh @mesh ranks = RANKS
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
