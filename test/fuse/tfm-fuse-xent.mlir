// RUN: %opt %s --tfm-fuse-xent | FileCheck %s

!r = tensor<128xf32, #tfm.dims<"C">>
!rows = tensor<128xi32, #tfm.dims<"C">>
!l = tensor<128x384xf32, #tfm.dims<"C", "">>

// CHECK-LABEL: tfm.func @head(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x384xf32, #dims_C_>, %[[ARG1:.+]]: tensor<128xi32, #dims_C>) -> tensor<128x384xf32, #dims_C_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.scale %[[ARG0]] {factor = 1.000000e+00 : f64} : tensor<128x384xf32, #dims_C_>
// CHECK-NEXT:   %[[LOSS:.+]], %[[DLOGITS:.+]] = tfm.fused_cross_entropy %[[V0]], %[[ARG1]] {weight = "loss_weight"} : tensor<128x384xf32, #dims_C_>, tensor<128xi32, #dims_C>
// CHECK-NEXT:   tfm.report_loss %[[LOSS]] {weight = "loss_weight"} : tensor<128xf32, #dims_C>
// CHECK-NEXT:   tfm.return %[[DLOGITS]] : tensor<128x384xf32, #dims_C_>
tfm.func @head(%x: !l, %targets: !rows) -> !l {
  %logits = tfm.scale %x {factor = 1.0} : !l
  %loss, %lse = tfm.cross_entropy %logits, %targets : !l, !rows
  tfm.report_loss %loss {weight = "loss_weight"} : !r
  %d = tfm.splat {scalar = "loss_weight"} : !r
  %dl = tfm.cross_entropy_grad %logits, %targets, %lse, %d : !l, !rows, !r, !r
  tfm.return %dl : !l
}

// CHECK-LABEL: tfm.func @no_splat
// CHECK-NOT: fused_cross_entropy
tfm.func @no_splat(%logits: !l, %targets: !rows, %d: !r) -> (!l, !r) {
  %loss, %lse = tfm.cross_entropy %logits, %targets : !l, !rows
  %dl = tfm.cross_entropy_grad %logits, %targets, %lse, %d : !l, !rows, !r, !r
  tfm.return %dl, %loss : !l, !r
}

// CHECK-LABEL: tfm.func @other_targets
// CHECK-NOT: fused_cross_entropy
tfm.func @other_targets(%logits: !l, %targets: !rows, %targets2: !rows) -> (!l, !r) {
  %loss, %lse = tfm.cross_entropy %logits, %targets : !l, !rows
  %d = tfm.splat {scalar = "loss_weight"} : !r
  %dl = tfm.cross_entropy_grad %logits, %targets2, %lse, %d : !l, !rows, !r, !r
  tfm.return %dl, %loss : !l, !r
}

// CHECK-LABEL: tfm.func @other_logits
// CHECK-NOT: fused_cross_entropy
tfm.func @other_logits(%logits: !l, %logits2: !l, %targets: !rows) -> (!l, !r) {
  %loss, %lse = tfm.cross_entropy %logits, %targets : !l, !rows
  %d = tfm.splat {scalar = "loss_weight"} : !r
  %dl = tfm.cross_entropy_grad %logits2, %targets, %lse, %d : !l, !rows, !r, !r
  tfm.return %dl, %loss : !l, !r
}

// CHECK-LABEL: tfm.func @no_loss
// CHECK-NOT: fused_cross_entropy
tfm.func @no_loss(%logits: !l, %targets: !rows, %lse: !r) -> !l {
  %d = tfm.splat {scalar = "loss_weight"} : !r
  %dl = tfm.cross_entropy_grad %logits, %targets, %lse, %d : !l, !rows, !r, !r
  tfm.return %dl : !l
}

// The fused operation would overwrite what is returned.
// CHECK-LABEL: tfm.func @logits_used
// CHECK-NOT: fused_cross_entropy
tfm.func @logits_used(%logits: !l, %targets: !rows) -> (!l, !r, !l) {
  %loss, %lse = tfm.cross_entropy %logits, %targets : !l, !rows
  %d = tfm.splat {scalar = "loss_weight"} : !r
  %dl = tfm.cross_entropy_grad %logits, %targets, %lse, %d : !l, !rows, !r, !r
  tfm.return %dl, %loss, %logits : !l, !r, !l
}

// CHECK-LABEL: tfm.func @lse_used
// CHECK-NOT: fused_cross_entropy
tfm.func @lse_used(%logits: !l, %targets: !rows) -> (!l, !r, !r) {
  %loss, %lse = tfm.cross_entropy %logits, %targets : !l, !rows
  %d = tfm.splat {scalar = "loss_weight"} : !r
  %dl = tfm.cross_entropy_grad %logits, %targets, %lse, %d : !l, !rows, !r, !r
  tfm.return %dl, %loss, %lse : !l, !r, !r
}
