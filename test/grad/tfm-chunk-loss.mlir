// RUN: %opt %s --tfm-chunk-loss=rows=1024 | FileCheck %s
// RUN: %opt %s --tfm-chunk-loss=rows=768 | FileCheck %s --check-prefix=DIVIDES
// RUN: %opt %s --tfm-chunk-loss | FileCheck %s --check-prefix=DEFAULT
// RUN: %opt %s --tfm-chunk-loss=rows=8192 | FileCheck %s --check-prefix=WHOLE

!cx = tensor<4096x64xf32, #tfm.dims<"C", "">>
!c = tensor<4096xi32, #tfm.dims<"C">>
!rx = tensor<4096x64xf32, #tfm.dims<"R", "">>

// All types of the body named C follow; T, R and plain sizes stay.
// CHECK-LABEL: tfm.func @head(
// CHECK-SAME: %[[ARG0:.+]]: tensor<1024x64xf32, #dims_C_>, %[[ARG1:.+]]: tensor<1024xi32, #dims_C>, %[[ARG2:.+]]: tensor<384x64xf32>) -> tensor<1024x64xf32, #dims_C_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.linear %[[ARG0]], %[[ARG2]] : tensor<1024x64xf32, #dims_C_>, tensor<384x64xf32>
// CHECK-NEXT:   %[[LOSS:.+]], %[[LSE:.+]] = tfm.cross_entropy %[[V0]], %[[ARG1]] : tensor<1024x384xf32, #dims_C_>, tensor<1024xi32, #dims_C>
// CHECK-NEXT:   tfm.return %[[ARG0]] : tensor<1024x64xf32, #dims_C_>
// CHECK-LABEL: tfm.func @micro_step(
// CHECK-SAME: %[[ARG0:.+]]: tensor<4096x64xf32, #dims_R_>, %[[ARG1:.+]]: tensor<4096xi32, #dims_R>, %[[ARG2:.+]]: tensor<384x64xf32>) -> tensor<4096x64xf32, #dims_R_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.chunk_loop(%[[ARG0]], %[[ARG1]]) shared(%[[ARG2]]) body = @head chunk = 1024 : (tensor<4096x64xf32, #dims_R_>, tensor<4096xi32, #dims_R>) shared(tensor<384x64xf32>) -> tensor<4096x64xf32, #dims_R_>
// CHECK-NEXT:   tfm.return %[[V0]] : tensor<4096x64xf32, #dims_R_>
// The most rows that divide the capacity.
// DIVIDES: tfm.chunk_loop({{.*}}) {{.*}}body = @head chunk = 512
// DEFAULT: tfm.chunk_loop({{.*}}) {{.*}}body = @head chunk = 512
// WHOLE: tfm.chunk_loop({{.*}}) {{.*}}body = @head chunk = 4096
tfm.architecture @m {
  tfm.func @head(%x: !cx, %t: !c, %w: tensor<384x64xf32>) -> !cx {
    %l = tfm.linear %x, %w : !cx, tensor<384x64xf32>
    %loss, %lse = tfm.cross_entropy %l, %t : tensor<4096x384xf32, #tfm.dims<"C", "">>, !c
    tfm.return %x : !cx
  }
  tfm.func @micro_step(%x: !rx, %t: tensor<4096xi32, #tfm.dims<"R">>, %w: tensor<384x64xf32>) -> !rx {
    %d = tfm.chunk_loop(%x, %t) shared(%w) body = @head chunk = 4096
      : (!rx, tensor<4096xi32, #tfm.dims<"R">>) shared(tensor<384x64xf32>) -> !rx
    tfm.return %d : !rx
  }
}
