// RUN: sed 's/MESH/ranks = 2/' %s > %t.two
// RUN: %opt %t.two --fsdp-keep-gathered=all=true | FileCheck %s --check-prefix=ALL
// RUN: %opt %t.two --fsdp-keep-gathered=budget=32768 --remarks-filter='fsdpq.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: %opt %t.two --fsdp-keep-gathered=budget=49151 | FileCheck %s --check-prefix=BUDGET-IR
// RUN: %opt %t.two --fsdp-keep-gathered=budget=10240 --remarks-filter='fsdpq.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=NONE

// Nothing to spend, or no unit that is cut: nothing is changed.
// RUN: %opt %t.two -o %t.unchanged
// RUN: %opt %t.two --fsdp-keep-gathered | diff - %t.unchanged
// RUN: sed 's/MESH/ranks = 2 shards = 1/' %s > %t.whole
// RUN: %opt %t.whole -o %t.unchanged
// RUN: %opt %t.whole --fsdp-keep-gathered=all=true | diff - %t.unchanged

// What both passes of a layer gather stays whole between them: @base. @other is used
// by the forward kind alone, @trained by the backward kind alone. A stack without a
// backward pass keeps nothing.
// ALL-LABEL: tfm.layer @f(
// ALL-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// ALL-NEXT:   %[[V0:.+]] = fsdp.all_gather_start @base
// ALL-NEXT:   %[[V1:.+]] = fsdp.wait %[[V0]]
// ALL-NEXT:   %[[V2:.+]] = fsdp.view %[[V1]] [@q] : tensor<64x64xf32>
// ALL-NEXT:   %[[V3:.+]] = tfm.linear %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ALL-NEXT:   fsdp.release %[[V1]]
// ALL-NEXT:   %[[V4:.+]] = fsdp.all_gather_start @other
// ALL-NEXT:   %[[V5:.+]] = fsdp.wait %[[V4]]
// ALL-NEXT:   %[[V6:.+]] = fsdp.view %[[V5]] [@k] : tensor<64x64xf32>
// ALL-NEXT:   %[[V7:.+]] = tfm.linear %[[V3]], %[[V6]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ALL-NEXT:   fsdp.release %[[V5]]
// ALL-NEXT:   tfm.return %[[V7]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// ALL-LABEL: tfm.layer @f.kept(
// ALL-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>) {
// ALL-NEXT:   %[[V0:.+]] = fsdp.all_gather_start @base
// ALL-NEXT:   %[[V1:.+]] = fsdp.wait %[[V0]]
// ALL-NEXT:   %[[V2:.+]] = fsdp.view %[[V1]] [@q] : tensor<64x64xf32>
// ALL-NEXT:   %[[V3:.+]] = tfm.linear %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ALL-NEXT:   fsdp.keep %[[V1]]
// ALL-NEXT:   %[[V4:.+]] = fsdp.all_gather_start @other
// ALL-NEXT:   %[[V5:.+]] = fsdp.wait %[[V4]]
// ALL-NEXT:   %[[V6:.+]] = fsdp.view %[[V5]] [@k] : tensor<64x64xf32>
// ALL-NEXT:   %[[V7:.+]] = tfm.linear %[[V3]], %[[V6]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ALL-NEXT:   fsdp.release %[[V5]]
// ALL-NEXT:   tfm.return %[[V7]], %[[ARG0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// ALL-LABEL: tfm.layer @b(
// ALL-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ALL-NEXT:   %[[V0:.+]] = fsdp.all_gather_start @trained
// ALL-NEXT:   %[[V1:.+]] = fsdp.wait %[[V0]]
// ALL-NEXT:   %[[V2:.+]] = fsdp.view %[[V1]] [@a] : tensor<64x64xf32>
// ALL-NEXT:   %[[V3:.+]] = tfm.matmul %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ALL-NEXT:   fsdp.release %[[V1]]
// ALL-NEXT:   %[[V4:.+]] = fsdp.all_gather_start @base
// ALL-NEXT:   %[[V5:.+]] = fsdp.wait %[[V4]]
// ALL-NEXT:   %[[V6:.+]] = fsdp.view %[[V5]] [@q] : tensor<64x64xf32>
// ALL-NEXT:   %[[V7:.+]] = tfm.matmul %[[V3]], %[[V6]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ALL-NEXT:   fsdp.release %[[V5]]
// ALL-NEXT:   tfm.return %[[V7]] : tensor<128x64xf32, #dims_T_>
// ALL-LABEL: tfm.layer @b.kept(
// ALL-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ALL-NEXT:   %[[V0:.+]] = fsdp.all_gather_start @trained
// ALL-NEXT:   %[[V1:.+]] = fsdp.wait %[[V0]]
// ALL-NEXT:   %[[V2:.+]] = fsdp.view %[[V1]] [@a] : tensor<64x64xf32>
// ALL-NEXT:   %[[V3:.+]] = tfm.matmul %[[ARG0]], %[[V2]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ALL-NEXT:   fsdp.release %[[V1]]
// ALL-NEXT:   %[[V4:.+]] = fsdp.kept @base
// ALL-NEXT:   %[[V5:.+]] = fsdp.view %[[V4]] [@q] : tensor<64x64xf32>
// ALL-NEXT:   %[[V6:.+]] = tfm.matmul %[[V3]], %[[V5]] : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>
// ALL-NEXT:   fsdp.release %[[V4]]
// ALL-NEXT:   tfm.return %[[V6]] : tensor<128x64xf32, #dims_T_>
// ALL-LABEL: tfm.func @micro_step(
// ALL-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ALL-NEXT:   %[[V0:.+]], %[[V1:.+]] = tfm.stack(%[[ARG0]]) kinds = [@f, @f.kept] {layers = array<i32: 1, 1, 1>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>, !tfm.saved
// ALL-NEXT:   %[[V2:.+]] = tfm.stack_grad(%[[V0]]) saved(%[[V1]]) kinds = [@b, @b.kept] {layers = array<i32: 1, 1, 1>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>
// ALL-NEXT:   tfm.return %[[V2]] : tensor<128x64xf32, #dims_T_>
// ALL-LABEL: tfm.func @logits(
// ALL-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// ALL-NEXT:   %[[V0:.+]], %[[V1:.+]] = tfm.stack(%[[ARG0]]) kinds = [@f] {layers = array<i32: 0, 0, 0>} : tensor<128x64xf32, #dims_T_> -> tensor<128x64xf32, #dims_T_>, !tfm.saved
// ALL-NEXT:   tfm.return %[[V0]] : tensor<128x64xf32, #dims_T_>

// From the highest layer down, as many as there is room for: two of 16 KiB.
// BUDGET: remark: [Passed] keep-gathered | Category:fsdpq | Remark="weights stay whole for the backward pass: ", Remark="32.0 KiB", bytes=32768, layers=2
// BUDGET: tfm.stack({{.*}}) kinds = [@f, @f.kept] {layers = array<i32: 0, 1, 1>}
// BUDGET: tfm.stack_grad({{.*}}) saved({{.*}}) kinds = [@b, @b.kept] {layers = array<i32: 0, 1, 1>}
// BUDGET-IR: tfm.stack({{.*}}) kinds = [@f, @f.kept] {layers = array<i32: 0, 1, 1>}
// BUDGET-IR: tfm.stack_grad({{.*}}) saved({{.*}}) kinds = [@b, @b.kept] {layers = array<i32: 0, 1, 1>}

// NONE: remark: [Missed] keep-gathered | Category:fsdpq | Remark="no layer's weights stay whole: ", Remark="16.0 KiB", Remark=" a layer, ", Remark="10.0 KiB", Remark=" to spend"
// NONE-NOT: fsdp.kept
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>
tfm.architecture @m {
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  tfm.param @k per_layer : !w {hf = "k.{layer}"}
  tfm.param @a per_layer : !w {hf = "a.{layer}", trainable}
  fsdp.mesh @mesh MESH
  fsdp.unit @base [@q] layers = [0, 1, 2] {bytes = 16384 : i64, parts = [#fsdp.part<@q, "data", offset = 0, bytes = 16384>]}
  fsdp.unit @other [@k] layers = [0, 1, 2] {bytes = 16384 : i64, parts = [#fsdp.part<@k, "data", offset = 0, bytes = 16384>]}
  fsdp.unit @trained [@a] layers = [0, 1, 2] {trainable, bytes = 16384 : i64, parts = [#fsdp.part<@a, "data", offset = 0, bytes = 16384>]}
  tfm.layer @f(%x: !x) -> (!x, !x) {
    %p = fsdp.all_gather_start @base
    %g = fsdp.wait %p
    %q = fsdp.view %g [@q] : !w
    %y = tfm.linear %x, %q : !x, !w
    fsdp.release %g
    %p1 = fsdp.all_gather_start @other
    %g1 = fsdp.wait %p1
    %k = fsdp.view %g1 [@k] : !w
    %z = tfm.linear %y, %k : !x, !w
    fsdp.release %g1
    tfm.return %z, %x : !x, !x
  }
  tfm.layer @b(%dy: !x, %r: !x) -> !x {
    %p = fsdp.all_gather_start @trained
    %g = fsdp.wait %p
    %a = fsdp.view %g [@a] : !w
    %d = tfm.matmul %dy, %a : !x, !w
    fsdp.release %g
    %p1 = fsdp.all_gather_start @base
    %g1 = fsdp.wait %p1
    %q = fsdp.view %g1 [@q] : !w
    %dx = tfm.matmul %d, %q : !x, !w
    fsdp.release %g1
    tfm.return %dx : !x
  }
  tfm.func @micro_step(%x: !x) -> !x {
    %y, %s = tfm.stack(%x) kinds = [@f] {layers = array<i32: 0, 0, 0>} : !x -> !x, !tfm.saved
    %d = tfm.stack_grad(%y) saved(%s) kinds = [@b] {layers = array<i32: 0, 0, 0>} : !x -> !x
    tfm.return %d : !x
  }
  tfm.func @logits(%x: !x) -> !x {
    %y, %s = tfm.stack(%x) kinds = [@f] {layers = array<i32: 0, 0, 0>} : !x -> !x, !tfm.saved
    tfm.return %y : !x
  }
}
