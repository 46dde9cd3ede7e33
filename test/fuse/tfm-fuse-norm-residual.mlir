// RUN: %opt %s --tfm-fuse-norm-residual | FileCheck %s

!t = tensor<128xf32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!norm = tensor<64xf32>

tfm.param @n per_layer : !norm {hf = "n.{layer}"}

// The sum may have other uses: it is a result. The weight moves up to where the
// fused operation stands.
// CHECK-LABEL: tfm.layer @forward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>) -> (tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128xf32, #dims_T>) {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@n] : tensor<64xf32>
// CHECK-NEXT:   %[[SUM:.+]], %[[Y:.+]], %[[RSTD:.+]] = tfm.add_rms_norm %[[ARG0]], %[[ARG1]], %[[V0]] {eps = 1.000000e-05 : f64} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.scale %[[SUM]] {factor = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   %[[V2:.+]] = tfm.add %[[V1]], %[[Y]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[SUM]], %[[V2]], %[[RSTD]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<128xf32, #dims_T>
// CHECK-LABEL: tfm.layer @backward(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG2:.+]]: tensor<64xf32>, %[[ARG3:.+]]: tensor<128xf32, #dims_T>, %[[ARG4:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.rms_norm_grad %[[ARG0]], %[[ARG1]], %[[ARG2]], %[[ARG3]], %[[ARG4]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<64xf32>, tensor<128xf32, #dims_T>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V0]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @backward_swapped(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG2:.+]]: tensor<64xf32>, %[[ARG3:.+]]: tensor<128xf32, #dims_T>, %[[ARG4:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.rms_norm_grad %[[ARG0]], %[[ARG1]], %[[ARG2]], %[[ARG3]], %[[ARG4]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32, #dims_T_>, tensor<64xf32>, tensor<128xf32, #dims_T>, tensor<128x64xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V0]] : tensor<128x64xf32, #dims_T_>
tfm.layer @forward(%x: !x, %r: !x) -> (!x, !x, !t) {
  %s = tfm.add %x, %r : !x, !x
  %z = tfm.scale %s {factor = 2.0} : !x
  %w = tfm.use [@n] : !norm
  %y, %rstd = tfm.rms_norm %s, %w {eps = 1.0e-5} : !x, !norm
  %q = tfm.add %z, %y : !x, !x
  tfm.return %s, %q, %rstd : !x, !x, !t
}

tfm.layer @backward(%dy: !x, %s: !x, %w: !norm, %rstd: !t, %ds: !x) -> !x {
  %d = tfm.rms_norm_grad %dy, %s, %w, %rstd : !x, !x, !norm, !t
  %dx = tfm.add %ds, %d : !x, !x
  tfm.return %dx : !x
}

tfm.layer @backward_swapped(%dy: !x, %s: !x, %w: !norm, %rstd: !t, %ds: !x) -> !x {
  %d = tfm.rms_norm_grad %dy, %s, %w, %rstd : !x, !x, !norm, !t
  %dx = tfm.add %d, %ds : !x, !x
  tfm.return %dx : !x
}

// CHECK-LABEL: tfm.layer @no_sum
// CHECK-NOT: add_rms_norm
tfm.layer @no_sum(%x: !x, %w: !norm) -> !x {
  %s = tfm.scale %x {factor = 2.0} : !x
  %y, %rstd = tfm.rms_norm %s, %w {eps = 1.0e-5} : !x, !norm
  tfm.return %y : !x
}

// The weight is computed from something after the sum.
// CHECK-LABEL: tfm.layer @late_weight
// CHECK-NOT: add_rms_norm
tfm.layer @late_weight(%x: !x, %w0: !norm) -> !x {
  %s = tfm.add %x, %x : !x, !x
  %w = tfm.scale %w0 {factor = 2.0} : !norm
  %y, %rstd = tfm.rms_norm %s, %w {eps = 1.0e-5} : !x, !norm
  tfm.return %y : !x
}

// CHECK-LABEL: tfm.layer @no_norm_gradient
// CHECK-NEXT: tfm.add
tfm.layer @no_norm_gradient(%a: !x, %b: !x) -> !x {
  %dx = tfm.add %a, %b : !x, !x
  tfm.return %dx : !x
}

// CHECK-LABEL: tfm.layer @gradient_used
// CHECK-NEXT: tfm.rms_norm_grad %arg0, %arg1, %arg2, %arg3 :
// CHECK-NEXT: tfm.add
tfm.layer @gradient_used(%dy: !x, %s: !x, %w: !norm, %rstd: !t, %ds: !x) -> (!x, !x) {
  %d = tfm.rms_norm_grad %dy, %s, %w, %rstd : !x, !x, !norm, !t
  %dx = tfm.add %ds, %d : !x, !x
  tfm.return %dx, %d : !x, !x
}

// Only one value can be added on the way.
// CHECK-LABEL: tfm.layer @two_sums
// CHECK-NEXT: %[[D:.*]] = tfm.rms_norm_grad %arg0, %arg1, %arg2, %arg3, %arg4 :
// CHECK-NEXT: tfm.add %[[D]], %arg4
tfm.layer @two_sums(%dy: !x, %s: !x, %w: !norm, %rstd: !t, %ds: !x) -> !x {
  %d = tfm.rms_norm_grad %dy, %s, %w, %rstd, %ds : !x, !x, !norm, !t, !x
  %dx = tfm.add %d, %ds : !x, !x
  tfm.return %dx : !x
}

// A trained weight's copy in bf16 moves up with it, where it is read before.
// CHECK-LABEL: tfm.layer @copied_weight
// CHECK: tfm.cast %{{.+}} : tensor<64xf32> -> tensor<64xbf16>
// CHECK-NEXT: tfm.add_rms_norm
tfm.layer @copied_weight(%x: tensor<128x64xbf16, #tfm.dims<"T", "">>) -> tensor<128x64xbf16, #tfm.dims<"T", "">> {
  %w = tfm.use [@n] : !norm
  %s = tfm.add %x, %x : tensor<128x64xbf16, #tfm.dims<"T", "">>, tensor<128x64xbf16, #tfm.dims<"T", "">>
  %w16 = tfm.cast %w : !norm -> tensor<64xbf16>
  %y, %rstd = tfm.rms_norm %s, %w16 {eps = 1.0e-5} : tensor<128x64xbf16, #tfm.dims<"T", "">>, tensor<64xbf16>
  tfm.return %y : tensor<128x64xbf16, #tfm.dims<"T", "">>
}
