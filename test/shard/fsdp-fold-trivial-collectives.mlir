// RUN: sed 's/MESH/ranks = 1/' %s | %opt --fsdp-insert-collectives --fsdp-fold-trivial-collectives | FileCheck %s --check-prefix=ONE
// RUN: sed 's/MESH/ranks = 1/' %s | %opt --fsdp-insert-collectives=reduce=step --fsdp-fold-trivial-collectives | FileCheck %s --check-prefix=ONE
// RUN: sed 's/MESH/ranks = 1 {deterministic}/' %s | %opt --fsdp-insert-collectives --fsdp-fold-trivial-collectives | FileCheck %s --check-prefix=ORDER
// RUN: sed 's/MESH/ranks = 2 shards = 1/' %s | %opt --fsdp-insert-collectives --fsdp-fold-trivial-collectives | FileCheck %s --check-prefix=WHOLE
// RUN: sed 's/MESH/ranks = 2/' %s | %opt --fsdp-insert-collectives -o %t.before
// RUN: sed 's/MESH/ranks = 2/' %s | %opt --fsdp-insert-collectives --fsdp-fold-trivial-collectives | diff - %t.before

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// On a mesh of one nothing is left but where parameters lie, and gradients are
// summed where they are kept, however often they would be reduced. On a mesh of
// two the same input is not changed.
// ONE-LABEL: tfm.layer @forward(
// ONE-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ONE-NEXT:   %[[V0:.+]] = fsdp.local @base
// ONE-NEXT:   %[[V1:.+]] = fsdp.view %[[V0]] [@q] : tensor<64x64xf32>
// ONE-NEXT:   %[[V2:.+]] = fsdp.view %[[V0]] [@k] : tensor<64x64xf32>
// ONE-NEXT:   %[[V3:.+]] = fsdp.local @trained
// ONE-NEXT:   %[[V4:.+]] = fsdp.view %[[V3]] [@a] : tensor<64x64xf32>
// ONE-NEXT:   %[[V5:.+]] = tfm.linear %[[ARG0]], %[[V1]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   %[[V6:.+]] = tfm.linear %[[V5]], %[[V4]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   %[[V7:.+]] = tfm.linear %[[V6]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   tfm.return %[[V7]] : tensor<128x64xf32, #dims_T_>
// ONE-LABEL: tfm.layer @backward(
// ONE-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ONE-NEXT:   %[[V0:.+]] = tfm.matmul %[[ARG0]], %[[ARG1]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// ONE-NEXT:   tfm.accumulate [@a], %[[V0]] : tensor<64x64xf32>
// ONE-NEXT:   %[[V1:.+]] = fsdp.local @trained
// ONE-NEXT:   %[[V2:.+]] = fsdp.view %[[V1]] [@a] : tensor<64x64xf32>
// ONE-NEXT:   %[[V3:.+]] = tfm.matmul %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   %[[V4:.+]] = fsdp.local @base
// ONE-NEXT:   %[[V5:.+]] = fsdp.view %[[V4]] [@q] : tensor<64x64xf32>
// ONE-NEXT:   %[[V6:.+]] = tfm.matmul %[[V3]], %[[V5]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   tfm.return %[[V6]] : tensor<128x64xf32, #dims_T_>
// ONE-LABEL: tfm.func @nothing(
// ONE-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ONE-NEXT:   tfm.return %[[ARG0]] : tensor<128x64xf32, #dims_T_>
// ONE-LABEL: tfm.layer @kept(
// ONE-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ONE-NEXT:   %[[V0:.+]] = fsdp.local @base
// ONE-NEXT:   %[[V1:.+]] = fsdp.view %[[V0]] [@q] : tensor<64x64xf32>
// ONE-NEXT:   %[[V2:.+]] = tfm.matmul %[[ARG0]], %[[V1]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ONE-NEXT:   tfm.return %[[V2]] : tensor<128x64xf32, #dims_T_>
// ONE-LABEL: tfm.func @optimizer_step(
// ONE-NEXT:   tfm.return

// The order of a deterministic sum is that of its reductions: they stay.
// ORDER-LABEL: tfm.layer @backward(
// ORDER-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ORDER-NEXT:   fsdp.gradient_start @trained
// ORDER-NEXT:   %[[V0:.+]] = tfm.matmul %[[ARG0]], %[[ARG1]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// ORDER-NEXT:   tfm.accumulate [@a], %[[V0]] : tensor<64x64xf32>
// ORDER-NEXT:   fsdp.reduce_scatter_start @trained
// ORDER-NEXT:   %[[V1:.+]] = fsdp.local @trained
// ORDER-NEXT:   %[[V2:.+]] = fsdp.view %[[V1]] [@a] : tensor<64x64xf32>
// ORDER-NEXT:   %[[V3:.+]] = tfm.matmul %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ORDER-NEXT:   %[[V4:.+]] = fsdp.local @base
// ORDER-NEXT:   %[[V5:.+]] = fsdp.view %[[V4]] [@q] : tensor<64x64xf32>
// ORDER-NEXT:   %[[V6:.+]] = tfm.matmul %[[V3]], %[[V5]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ORDER-NEXT:   tfm.return %[[V6]] : tensor<128x64xf32, #dims_T_>

// Two ranks that both have whole units: nothing is gathered, and gradients are
// summed over the ranks once, before they are used.
// WHOLE-LABEL: tfm.layer @backward(
// WHOLE-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// WHOLE-NEXT:   %[[V0:.+]] = tfm.matmul %[[ARG0]], %[[ARG1]] {trans_a} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// WHOLE-NEXT:   tfm.accumulate [@a], %[[V0]] : tensor<64x64xf32>
// WHOLE-NEXT:   %[[V1:.+]] = fsdp.local @trained
// WHOLE-NEXT:   %[[V2:.+]] = fsdp.view %[[V1]] [@a] : tensor<64x64xf32>
// WHOLE-NEXT:   %[[V3:.+]] = tfm.matmul %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// WHOLE-NEXT:   %[[V4:.+]] = fsdp.local @base
// WHOLE-NEXT:   %[[V5:.+]] = fsdp.view %[[V4]] [@q] : tensor<64x64xf32>
// WHOLE-NEXT:   %[[V6:.+]] = tfm.matmul %[[V3]], %[[V5]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// WHOLE-NEXT:   tfm.return %[[V6]] : tensor<128x64xf32, #dims_T_>
// WHOLE-LABEL: tfm.func @optimizer_step(
// WHOLE-NEXT:   fsdp.reduce_replicas @trained
// WHOLE-NEXT:   tfm.return
tfm.architecture @m {
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  tfm.param @k per_layer : !w {hf = "k.{layer}"}
  tfm.param @a per_layer : !w {hf = "a.{layer}", trainable}
  fsdp.mesh @mesh MESH
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
  }
  tfm.layer @kept(%dy: !x) -> !x {
    %g = fsdp.kept @base
    %q = fsdp.view %g [@q] : !w
    %dx = tfm.matmul %dy, %q : !x, !w
    fsdp.release %g
    tfm.return %dx : !x
  }
  tfm.func @optimizer_step() {
    tfm.return
  }
}
