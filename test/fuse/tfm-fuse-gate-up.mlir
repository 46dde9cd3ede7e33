// RUN: %opt %s --tfm-fuse-gate-up | FileCheck %s

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!f = tensor<128x96xf32, #tfm.dims<"T", "">>
!w = tensor<96x64xf32>
!a = tensor<8x64xf32>
!b = tensor<96x8xf32>
!nf4 = tensor<96x64x!qt.nf4<block = 64, scale = f32>>

tfm.param @gate per_layer : !w {hf = "gate.{layer}"}
tfm.param @up per_layer : !w {hf = "up.{layer}"}
tfm.param @qgate per_layer : !nf4 {hf = "qgate.{layer}"}
tfm.param @gate.A per_layer : !a {init = "zeros"}
tfm.param @gate.B per_layer : !b {init = "zeros"}
tfm.param @up.A per_layer : !a {init = "zeros"}
tfm.param @up.B per_layer : !b {init = "zeros"}
tfm.param @up.A4 per_layer : tensor<4x64xf32> {init = "zeros"}
tfm.param @up.B4 per_layer : tensor<96x4xf32> {init = "zeros"}

// CHECK-LABEL: tfm.layer @plain(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x96xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@gate, @up] : tensor<192x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.linear %[[ARG0]], %[[V0]] : tensor<128x64xf32, #dims_T_>, tensor<192x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.gated_silu %[[V1]] : tensor<128x192xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V2]] : tensor<128x96xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @adapters(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x96xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@gate, @up] : tensor<192x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@gate.A, @up.A] : tensor<16x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.use [@gate.B, @up.B] : tensor<192x8xf32>
// CHECK-NEXT:   %[[Y:.+]], %[[U:.+]] = tfm.lora_linear %[[ARG0]], %[[V0]], %[[V1]], %[[V2]] {adapted = array<i1: true, true>, parts = array<i64: 96, 96>, scale = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>, tensor<192x64xf32>, tensor<16x64xf32>, tensor<192x8xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.gated_silu %[[Y]] : tensor<128x192xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V3]] : tensor<128x96xf32, #dims_T_>
// CHECK-LABEL: tfm.layer @one_adapter(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>) -> tensor<128x96xf32, #dims_T_> {
// CHECK-NEXT:   %[[V0:.+]] = tfm.use [@gate, @up] : tensor<192x64xf32>
// CHECK-NEXT:   %[[V1:.+]] = tfm.use [@up.A] : tensor<8x64xf32>
// CHECK-NEXT:   %[[V2:.+]] = tfm.use [@up.B] : tensor<96x8xf32>
// CHECK-NEXT:   %[[Y:.+]], %[[U:.+]] = tfm.lora_linear %[[ARG0]], %[[V0]], %[[V1]], %[[V2]] {adapted = array<i1: false, true>, parts = array<i64: 96, 96>, scale = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>, tensor<192x64xf32>, tensor<8x64xf32>, tensor<96x8xf32>
// CHECK-NEXT:   %[[V3:.+]] = tfm.gated_silu %[[Y]] : tensor<128x192xf32, #dims_T_>
// CHECK-NEXT:   tfm.return %[[V3]] : tensor<128x96xf32, #dims_T_>
tfm.layer @plain(%x: !x) -> !f {
  %wg = tfm.use [@gate] : !w
  %wu = tfm.use [@up] : !w
  %g = tfm.linear %x, %wg : !x, !w
  %u = tfm.linear %x, %wu : !x, !w
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}

// Adapters of equal rank and scale are joined too: the factors lie side by side.
tfm.layer @adapters(%x: !x) -> !f {
  %wg = tfm.use [@gate] : !w
  %ga = tfm.use [@gate.A] : !a
  %gb = tfm.use [@gate.B] : !b
  %g, %0 = tfm.lora_linear %x, %wg, %ga, %gb {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>} : !x, !w, !a, !b
  %wu = tfm.use [@up] : !w
  %ua = tfm.use [@up.A] : !a
  %ub = tfm.use [@up.B] : !b
  %u, %1 = tfm.lora_linear %x, %wu, %ua, %ub {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>} : !x, !w, !a, !b
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}

// One of the two alone has an adapter.
tfm.layer @one_adapter(%x: !x) -> !f {
  %wg = tfm.use [@gate] : !w
  %g = tfm.linear %x, %wg : !x, !w
  %wu = tfm.use [@up] : !w
  %ua = tfm.use [@up.A] : !a
  %ub = tfm.use [@up.B] : !b
  %u, %1 = tfm.lora_linear %x, %wu, %ua, %ub {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>} : !x, !w, !a, !b
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}

// CHECK-LABEL: tfm.layer @already_joined
// CHECK-NEXT: tfm.gated_silu %arg0
tfm.layer @already_joined(%x: !x) -> tensor<128x32xf32, #tfm.dims<"T", "">> {
  %h = tfm.gated_silu %x : !x
  tfm.return %h : tensor<128x32xf32, #tfm.dims<"T", "">>
}

// CHECK-LABEL: tfm.layer @no_linear
// CHECK: tfm.gated_silu %{{.*}}, %{{.*}}
tfm.layer @no_linear(%x: !x, %u: !f) -> !f {
  %wg = tfm.use [@gate] : !w
  %g = tfm.linear %x, %wg : !x, !w
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}

// CHECK-LABEL: tfm.layer @second_use
// CHECK: tfm.gated_silu %{{.*}}, %{{.*}}
tfm.layer @second_use(%x: !x) -> (!f, !f) {
  %wg = tfm.use [@gate] : !w
  %wu = tfm.use [@up] : !w
  %g = tfm.linear %x, %wg : !x, !w
  %u = tfm.linear %x, %wu : !x, !w
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h, %g : !f, !f
}

// CHECK-LABEL: tfm.layer @different_values
// CHECK: tfm.gated_silu %{{.*}}, %{{.*}}
tfm.layer @different_values(%x: !x, %z: !x) -> !f {
  %wg = tfm.use [@gate] : !w
  %wu = tfm.use [@up] : !w
  %g = tfm.linear %x, %wg : !x, !w
  %u = tfm.linear %z, %wu : !x, !w
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}

// CHECK-LABEL: tfm.layer @no_parameter
// CHECK: tfm.gated_silu %{{.*}}, %{{.*}}
tfm.layer @no_parameter(%x: !x, %wg: !w) -> !f {
  %wu = tfm.use [@up] : !w
  %g = tfm.linear %x, %wg : !x, !w
  %u = tfm.linear %x, %wu : !x, !w
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}

// CHECK-LABEL: tfm.layer @different_types
// CHECK: tfm.gated_silu %{{.*}}, %{{.*}}
tfm.layer @different_types(%x: !x) -> !f {
  %wg = tfm.use [@qgate] : !nf4
  %wu = tfm.use [@up] : !w
  %g = tfm.linear %x, %wg : !x, !nf4
  %u = tfm.linear %x, %wu : !x, !w
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}

// CHECK-LABEL: tfm.layer @different_scale
// CHECK: tfm.gated_silu %{{.*}}, %{{.*}}
tfm.layer @different_scale(%x: !x) -> !f {
  %wg = tfm.use [@gate] : !w
  %ga = tfm.use [@gate.A] : !a
  %gb = tfm.use [@gate.B] : !b
  %g, %0 = tfm.lora_linear %x, %wg, %ga, %gb {scale = 1.0, parts = array<i64: 96>, adapted = array<i1: true>} : !x, !w, !a, !b
  %wu = tfm.use [@up] : !w
  %ua = tfm.use [@up.A] : !a
  %ub = tfm.use [@up.B] : !b
  %u, %1 = tfm.lora_linear %x, %wu, %ua, %ub {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>} : !x, !w, !a, !b
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}

// CHECK-LABEL: tfm.layer @different_rank
// CHECK: tfm.gated_silu %{{.*}}, %{{.*}}
tfm.layer @different_rank(%x: !x) -> !f {
  %wg = tfm.use [@gate] : !w
  %ga = tfm.use [@gate.A] : !a
  %gb = tfm.use [@gate.B] : !b
  %g, %0 = tfm.lora_linear %x, %wg, %ga, %gb {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>} : !x, !w, !a, !b
  %wu = tfm.use [@up] : !w
  %ua = tfm.use [@up.A4] : tensor<4x64xf32>
  %ub = tfm.use [@up.B4] : tensor<96x4xf32>
  %u, %1 = tfm.lora_linear %x, %wu, %ua, %ub {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>}
    : !x, !w, tensor<4x64xf32>, tensor<96x4xf32>
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}

// An adapter's inner value that is used elsewhere.
// CHECK-LABEL: tfm.layer @inner_used
// CHECK: tfm.gated_silu %{{.*}}, %{{.*}}
tfm.layer @inner_used(%x: !x) -> (!f, tensor<128x8xf32, #tfm.dims<"T", "">>) {
  %wg = tfm.use [@gate] : !w
  %g = tfm.linear %x, %wg : !x, !w
  %wu = tfm.use [@up] : !w
  %ua = tfm.use [@up.A] : !a
  %ub = tfm.use [@up.B] : !b
  %u, %1 = tfm.lora_linear %x, %wu, %ua, %ub {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>} : !x, !w, !a, !b
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h, %1 : !f, tensor<128x8xf32, #tfm.dims<"T", "">>
}

// Adapters that drop the same elements are joined, others are not.
// CHECK-LABEL: tfm.layer @one_dropout(
// CHECK: tfm.lora_linear {{.*}}adapted = array<i1: true, true>, mask = #tfm.dropout<rate = 1.000000e-01 : f64, site = 0>, parts = array<i64: 96, 96>
tfm.layer @one_dropout(%x: !x) -> !f {
  %wg = tfm.use [@gate] : !w
  %ga = tfm.use [@gate.A] : !a
  %gb = tfm.use [@gate.B] : !b
  %g, %0 = tfm.lora_linear %x, %wg, %ga, %gb {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>, mask = #tfm.dropout<rate = 0.1 : f64, site = 0>} : !x, !w, !a, !b
  %wu = tfm.use [@up] : !w
  %ua = tfm.use [@up.A] : !a
  %ub = tfm.use [@up.B] : !b
  %u, %1 = tfm.lora_linear %x, %wu, %ua, %ub {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>, mask = #tfm.dropout<rate = 0.1 : f64, site = 0>} : !x, !w, !a, !b
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}

// CHECK-LABEL: tfm.layer @two_dropouts(
// CHECK: tfm.lora_linear {{.*}}site = 0
// CHECK: tfm.lora_linear {{.*}}site = 1
tfm.layer @two_dropouts(%x: !x) -> !f {
  %wg = tfm.use [@gate] : !w
  %ga = tfm.use [@gate.A] : !a
  %gb = tfm.use [@gate.B] : !b
  %g, %0 = tfm.lora_linear %x, %wg, %ga, %gb {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>, mask = #tfm.dropout<rate = 0.1 : f64, site = 0>} : !x, !w, !a, !b
  %wu = tfm.use [@up] : !w
  %ua = tfm.use [@up.A] : !a
  %ub = tfm.use [@up.B] : !b
  %u, %1 = tfm.lora_linear %x, %wu, %ua, %ub {scale = 2.0, parts = array<i64: 96>, adapted = array<i1: true>, mask = #tfm.dropout<rate = 0.1 : f64, site = 1>} : !x, !w, !a, !b
  %h = tfm.gated_silu %g, %u : !f, !f
  tfm.return %h : !f
}
