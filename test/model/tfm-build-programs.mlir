// RUN: %opt %s --tfm-build-programs=programs=micro_step,eval_step,logits | FileCheck %s
// RUN: %opt %s --tfm-build-programs=programs=logits | FileCheck %s --check-prefix=ONE

// With one program alone the others are not made.
// ONE-NOT: @trunk
// ONE-NOT: @head
// ONE-NOT: @micro_step
// ONE-NOT: @eval_step
// ONE: tfm.func @logits

!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<384x64xf32>

// CHECK-LABEL: tfm.func @micro_step.head(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_C_>, %[[ARG1:.+]]: tensor<128xi32, #dims_C>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@embed] : tensor<384x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_C_>, tensor<384x64xf32>
// CHECK-NEXT:   %[[LOSS:.+]], %[[LSE:.+]] = tfm.cross_entropy %[[V1]], %[[ARG1]] : tensor<128x384xf32, #dims_C_>, tensor<128xi32, #dims_C>
// CHECK-NEXT:   tfm.report_loss %[[LOSS]] {weight = "loss_weight"} : tensor<128xf32, #dims_C>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @micro_step(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128xi32, #dims_T> {tfm.port = "ids"}, %[[ARG1:.+]]: tensor<128xi32, #dims_T> {tfm.port = "positions"}, %[[ARG2:.+]]: tensor<128xi32, #dims_T> {tfm.port = "segments"}, %[[ARG3:.+]]: tensor<128xi32, #dims_R> {tfm.port = "label_rows"}, %[[ARG4:.+]]: tensor<128xi32, #dims_R> {tfm.port = "label_targets"}, %[[ARG5:.+]]: tensor<128xi32, #dims_T> {tfm.port = "label_index"}) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@embed] : tensor<384x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.embedding %[[ARG0]], %[[V0]] : tensor<128xi32, #dims_T>, tensor<384x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.gather_rows %[[V1]], %[[ARG3]], %[[ARG5]] : tensor<128x64xf32, #dims_T_>, tensor<128xi32, #dims_R>, tensor<128xi32, #dims_T>
// CHECK-NEXT:   tfm.chunk_loop(%[[V2]], %[[ARG4]]) body = @micro_step.head chunk = 128 : (tensor<128x64xf32, #dims_R_>, tensor<128xi32, #dims_R>)
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @eval_step.head(
// CHECK-LABEL: tfm.func @eval_step(
// CHECK: tfm.chunk_loop({{.*}}) body = @eval_step.head chunk = 128
// CHECK-LABEL: tfm.func @logits(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128xi32, #dims_T> {tfm.port = "ids"}, %[[ARG1:.+]]: tensor<128xi32, #dims_T> {tfm.port = "positions"}, %[[ARG2:.+]]: tensor<128xi32, #dims_T> {tfm.port = "segments"}, %[[ARG3:.+]]: tensor<1xi32> {tfm.port = "last_row"}, %[[ARG4:.+]]: tensor<128xi32, #dims_T> {tfm.port = "label_index"}) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@embed] : tensor<384x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.embedding %[[ARG0]], %[[V0]] : tensor<128xi32, #dims_T>, tensor<384x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.gather_rows %[[V1]], %[[ARG3]], %[[ARG4]] : tensor<128x64xf32, #dims_T_>, tensor<1xi32>, tensor<128xi32, #dims_T>
// CHECK-NEXT:   %[[V3:.+]] = tfm.use [@embed] : tensor<384x64xf32>
// CHECK-NEXT:   %[[V4:.+]] = tfm.linear %[[V2]], %[[V3]] : tensor<1x64xf32>, tensor<384x64xf32>
// CHECK-NEXT:   tfm.emit "logits", %[[V4]] : tensor<1x384xf32>
// CHECK-NEXT:   tfm.return
// CHECK-NOT: @trunk
tfm.architecture @m {
  tfm.param @embed : !w {hf = "embed"}
  tfm.func @trunk(%ids: !ids, %positions: !ids, %segments: !ids) -> !x {
    %w = tfm.use [@embed] : !w
    %x = tfm.embedding %ids, %w : !ids, !w
    tfm.return %x : !x
  }
  tfm.func @head(%x: !x) -> tensor<128x384xf32, #tfm.dims<"T", "">> {
    %w = tfm.use [@embed] : !w
    %l = tfm.linear %x, %w : !x, !w
    tfm.return %l : tensor<128x384xf32, #tfm.dims<"T", "">>
  }
}
