// RUN: %opt %s --tfm-fuse-qkv | FileCheck %s

!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!kv = tensor<128x32xf32, #tfm.dims<"T", "">>
!rope = tensor<128x16xf32, #tfm.dims<"T", "">>
!wq = tensor<64x64xf32>
!wk = tensor<32x64xf32>
!a = tensor<8x64xf32>

tfm.param @q per_layer : !wq {hf = "q.{layer}"}
tfm.param @k per_layer : !wk {hf = "k.{layer}"}
tfm.param @v per_layer : !wk {hf = "v.{layer}"}
tfm.param @q.A per_layer : !a {init = "zeros"}
tfm.param @q.B per_layer : tensor<64x8xf32> {init = "zeros"}
tfm.param @v.A per_layer : !a {init = "zeros"}
tfm.param @v.B per_layer : tensor<32x8xf32> {init = "zeros"}

// The window goes along.
// CHECK-LABEL: tfm.layer @plain(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x16xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128xi32, #dims_T>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@q, @k, @v] : tensor<128x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.rope %[[V1]], %[[ARG1]] {heads = 6 : i64} : tensor<128x128xf32, #dims_T_>, tensor<128x16xf32, #dims_T_>
// CHECK-NEXT:   %[[O:.+]], %[[LSE:.+]] = tfm.attention(%[[V2]]) %[[ARG2]] {heads = 4 : i64, kv_heads = 2 : i64, scale = 5.000000e-01 : f64, window = 32 : i64} : (tensor<128x128xf32, #dims_T_>), tensor<128xi32, #dims_T>
// CHECK-NEXT:   tfm.return %[[O]] : tensor<128x64xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @adapters(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<128x16xf32, #dims_T_>, %[[ARG2:.+]]: tensor<128xi32, #dims_T>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@q, @k, @v] : tensor<128x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@q.A, @v.A] : tensor<16x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.use [@q.B, @v.B] : tensor<96x8xf32>
// CHECK-NEXT:   %[[Y:.+]], %[[U:.+]] = tfm.lora_linear %[[ARG0]], %[[V0]], %[[V1]], %[[V2]] {adapted = array<i1: true, false, true>, parts = array<i64: 64, 32, 32>, scale = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>, tensor<128x64xf32>, tensor<16x64xf32>, tensor<96x8xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.rope %[[Y]], %[[ARG1]] {heads = 6 : i64} : tensor<128x128xf32, #dims_T_>, tensor<128x16xf32, #dims_T_>
// CHECK-NEXT:   %[[O:.+]], %[[LSE:.+]] = tfm.attention(%[[V3]]) %[[ARG2]] {heads = 4 : i64, kv_heads = 2 : i64} : (tensor<128x128xf32, #dims_T_>), tensor<128xi32, #dims_T>
// CHECK-NEXT:   tfm.return %[[O]] : tensor<128x64xf32, #dims_T_>
tfm.layer @plain(%x: !x, %rope: !rope, %s: !ids) -> !x {
  %wq = tfm.use [@q] : !wq
  %wk = tfm.use [@k] : !wk
  %wv = tfm.use [@v] : !wk
  %q0 = tfm.linear %x, %wq : !x, !wq
  %k0 = tfm.linear %x, %wk : !x, !wk
  %v = tfm.linear %x, %wv : !x, !wk
  %q = tfm.rope %q0, %rope {heads = 4 : i64} : !x, !rope
  %k = tfm.rope %k0, %rope {heads = 2 : i64} : !kv, !rope
  %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64, window = 32 : i64, scale = 0.5} : (!x, !kv, !kv), !ids
  tfm.return %o : !x
}

// q and v have adapters, k has none.
tfm.layer @adapters(%x: !x, %rope: !rope, %s: !ids) -> !x {
  %wq = tfm.use [@q] : !wq
  %qa = tfm.use [@q.A] : !a
  %qb = tfm.use [@q.B] : tensor<64x8xf32>
  %wk = tfm.use [@k] : !wk
  %wv = tfm.use [@v] : !wk
  %va = tfm.use [@v.A] : !a
  %vb = tfm.use [@v.B] : tensor<32x8xf32>
  %q0, %u0 = tfm.lora_linear %x, %wq, %qa, %qb {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>} : !x, !wq, !a, tensor<64x8xf32>
  %k0 = tfm.linear %x, %wk : !x, !wk
  %v, %u1 = tfm.lora_linear %x, %wv, %va, %vb {scale = 2.0, parts = array<i64: 32>, adapted = array<i1: true>} : !x, !wk, !a, tensor<32x8xf32>
  %q = tfm.rope %q0, %rope {heads = 4 : i64} : !x, !rope
  %k = tfm.rope %k0, %rope {heads = 2 : i64} : !kv, !rope
  %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!x, !kv, !kv), !ids
  tfm.return %o : !x
}

// CHECK-LABEL: tfm.layer @already_joined
// CHECK-NEXT: tfm.attention(%arg0) %arg1
tfm.layer @already_joined(%qkv: tensor<128x128xf32, #tfm.dims<"T", "">>, %s: !ids) -> !x {
  %o, %lse = tfm.attention(%qkv) %s {heads = 4 : i64, kv_heads = 2 : i64} : (tensor<128x128xf32, #tfm.dims<"T", "">>), !ids
  tfm.return %o : !x
}

// k does not rotate.
// CHECK-LABEL: tfm.layer @one_rotates
// CHECK: tfm.attention(%{{.*}}, %{{.*}}, %{{.*}})
tfm.layer @one_rotates(%x: !x, %rope: !rope, %s: !ids) -> !x {
  %wq = tfm.use [@q] : !wq
  %wk = tfm.use [@k] : !wk
  %wv = tfm.use [@v] : !wk
  %q0 = tfm.linear %x, %wq : !x, !wq
  %k = tfm.linear %x, %wk : !x, !wk
  %v = tfm.linear %x, %wv : !x, !wk
  %q = tfm.rope %q0, %rope {heads = 4 : i64} : !x, !rope
  %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!x, !kv, !kv), !ids
  tfm.return %o : !x
}

// CHECK-LABEL: tfm.layer @other_table
// CHECK: tfm.attention(%{{.*}}, %{{.*}}, %{{.*}})
tfm.layer @other_table(%x: !x, %rope: !rope, %rope2: !rope, %s: !ids) -> !x {
  %wq = tfm.use [@q] : !wq
  %wk = tfm.use [@k] : !wk
  %wv = tfm.use [@v] : !wk
  %q0 = tfm.linear %x, %wq : !x, !wq
  %k0 = tfm.linear %x, %wk : !x, !wk
  %v = tfm.linear %x, %wv : !x, !wk
  %q = tfm.rope %q0, %rope {heads = 4 : i64} : !x, !rope
  %k = tfm.rope %k0, %rope2 {heads = 2 : i64} : !kv, !rope
  %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!x, !kv, !kv), !ids
  tfm.return %o : !x
}

// CHECK-LABEL: tfm.layer @inverse
// CHECK: tfm.attention(%{{.*}}, %{{.*}}, %{{.*}})
tfm.layer @inverse(%x: !x, %rope: !rope, %s: !ids) -> !x {
  %wq = tfm.use [@q] : !wq
  %wk = tfm.use [@k] : !wk
  %wv = tfm.use [@v] : !wk
  %q0 = tfm.linear %x, %wq : !x, !wq
  %k0 = tfm.linear %x, %wk : !x, !wk
  %v = tfm.linear %x, %wv : !x, !wk
  %q = tfm.rope %q0, %rope {heads = 4 : i64, inverse} : !x, !rope
  %k = tfm.rope %k0, %rope {heads = 2 : i64, inverse} : !kv, !rope
  %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!x, !kv, !kv), !ids
  tfm.return %o : !x
}

// CHECK-LABEL: tfm.layer @some_heads
// CHECK: tfm.attention(%{{.*}}, %{{.*}}, %{{.*}})
tfm.layer @some_heads(%x: !x, %rope: !rope, %s: !ids) -> !x {
  %wq = tfm.use [@q] : !wq
  %wk = tfm.use [@k] : !wk
  %wv = tfm.use [@v] : !wk
  %q0 = tfm.linear %x, %wq : !x, !wq
  %k0 = tfm.linear %x, %wk : !x, !wk
  %v = tfm.linear %x, %wv : !x, !wk
  %q = tfm.rope %q0, %rope {heads = 2 : i64} : !x, !rope
  %k = tfm.rope %k0, %rope {heads = 2 : i64} : !kv, !rope
  %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!x, !kv, !kv), !ids
  tfm.return %o : !x
}

// CHECK-LABEL: tfm.layer @rotated_used
// CHECK: tfm.attention(%{{.*}}, %{{.*}}, %{{.*}})
tfm.layer @rotated_used(%x: !x, %rope: !rope, %s: !ids) -> (!x, !kv) {
  %wq = tfm.use [@q] : !wq
  %wk = tfm.use [@k] : !wk
  %wv = tfm.use [@v] : !wk
  %q0 = tfm.linear %x, %wq : !x, !wq
  %k0 = tfm.linear %x, %wk : !x, !wk
  %v = tfm.linear %x, %wv : !x, !wk
  %q = tfm.rope %q0, %rope {heads = 4 : i64} : !x, !rope
  %k = tfm.rope %k0, %rope {heads = 2 : i64} : !kv, !rope
  %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!x, !kv, !kv), !ids
  tfm.return %o, %k : !x, !kv
}

// CHECK-LABEL: tfm.layer @value_of_other_input
// CHECK: tfm.attention(%{{.*}}, %{{.*}}, %{{.*}})
tfm.layer @value_of_other_input(%x: !x, %z: !x, %rope: !rope, %s: !ids) -> !x {
  %wq = tfm.use [@q] : !wq
  %wk = tfm.use [@k] : !wk
  %wv = tfm.use [@v] : !wk
  %q0 = tfm.linear %x, %wq : !x, !wq
  %k0 = tfm.linear %x, %wk : !x, !wk
  %v = tfm.linear %z, %wv : !x, !wk
  %q = tfm.rope %q0, %rope {heads = 4 : i64} : !x, !rope
  %k = tfm.rope %k0, %rope {heads = 2 : i64} : !kv, !rope
  %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!x, !kv, !kv), !ids
  tfm.return %o : !x
}

// The projection of k before rotation is used elsewhere.
// CHECK-LABEL: tfm.layer @projection_used
// CHECK: tfm.attention(%{{.*}}, %{{.*}}, %{{.*}})
tfm.layer @projection_used(%x: !x, %rope: !rope, %s: !ids) -> (!x, !kv) {
  %wq = tfm.use [@q] : !wq
  %wk = tfm.use [@k] : !wk
  %wv = tfm.use [@v] : !wk
  %q0 = tfm.linear %x, %wq : !x, !wq
  %k0 = tfm.linear %x, %wk : !x, !wk
  %v = tfm.linear %x, %wv : !x, !wk
  %q = tfm.rope %q0, %rope {heads = 4 : i64} : !x, !rope
  %k = tfm.rope %k0, %rope {heads = 2 : i64} : !kv, !rope
  %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!x, !kv, !kv), !ids
  tfm.return %o, %k0 : !x, !kv
}
