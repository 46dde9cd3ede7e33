// RUN: %opt %s --tfm-fuse-lora | FileCheck %s

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!u = tensor<128x8xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>
!a = tensor<8x64xf32>
!b = tensor<64x8xf32>

// CHECK-LABEL: tfm.func @adapter(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<64x64xf32>, %[[ARG2:.+]]: tensor<8x64xf32>, %[[ARG3:.+]]: tensor<64x8xf32>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[Y:.+]], %[[U:.+]] = tfm.lora_linear %[[ARG0]], %[[ARG1]], %[[ARG2]], %[[ARG3]] {adapted = array<i1: true>, parts = array<i64: 64>, scale = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>, tensor<64x64xf32>, tensor<8x64xf32>, tensor<64x8xf32>
// CHECK-NEXT:   tfm.return %[[Y]] : tensor<128x64xf32, #dims_T_>
tfm.func @adapter(%x: !x, %w: !w, %a: !a, %b: !b) -> !x {
  %y0 = tfm.linear %x, %w : !x, !w
  %u = tfm.linear %x, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %y0, %s : !x, !x
  tfm.return %y : !x
}

// The sum the other way round, a weight of another type, a factor that JSON
// wrote as an integer.
// CHECK-LABEL: tfm.func @swapped(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128x64xf32, #dims_T_>, %[[ARG1:.+]]: tensor<64x64x!qt.nf4<block = 64, scale = f32>>, %[[ARG2:.+]]: tensor<8x64xf32>, %[[ARG3:.+]]: tensor<64x8xf32>) -> tensor<128x64xf32, #dims_T_> {
// CHECK-NEXT:   %[[Y:.+]], %[[U:.+]] = tfm.lora_linear %[[ARG0]], %[[ARG1]], %[[ARG2]], %[[ARG3]] {adapted = array<i1: true>, parts = array<i64: 64>, scale = 2.000000e+00 : f64} : tensor<128x64xf32, #dims_T_>, tensor<64x64x!qt.nf4<block = 64, scale = f32>>, tensor<8x64xf32>, tensor<64x8xf32>
// CHECK-NEXT:   tfm.return %[[Y]] : tensor<128x64xf32, #dims_T_>
tfm.func @swapped(%x: !x, %w: tensor<64x64x!qt.nf4<block = 64, scale = f32>>, %a: !a, %b: !b) -> !x {
  %y0 = tfm.linear %x, %w : !x, tensor<64x64x!qt.nf4<block = 64, scale = f32>>
  %u = tfm.linear %x, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2 : i64} : !x
  %y = tfm.add %s, %y0 : !x, !x
  tfm.return %y : !x
}

// CHECK-LABEL: tfm.func @no_layer
// CHECK-NOT: lora_linear
tfm.func @no_layer(%x: !x, %a: !a, %b: !b) -> !x {
  %u = tfm.linear %x, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %x, %s : !x, !x
  tfm.return %y : !x
}

// CHECK-LABEL: tfm.func @no_scale
// CHECK-NOT: lora_linear
tfm.func @no_scale(%x: !x, %w: !w, %a: !a, %b: !b) -> !x {
  %y0 = tfm.linear %x, %w : !x, !w
  %u = tfm.linear %x, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %y = tfm.add %y0, %v : !x, !x
  tfm.return %y : !x
}

// One factor only.
// CHECK-LABEL: tfm.func @no_adapter
// CHECK-NOT: lora_linear
tfm.func @no_adapter(%x: !x, %w: !w) -> !x {
  %y0 = tfm.linear %x, %w : !x, !w
  %v = tfm.linear %x, %w : !x, !w
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %y0, %s : !x, !x
  tfm.return %y : !x
}

// CHECK-LABEL: tfm.func @other_input
// CHECK-NOT: lora_linear
tfm.func @other_input(%x: !x, %z: !x, %w: !w, %a: !a, %b: !b) -> !x {
  %y0 = tfm.linear %x, %w : !x, !w
  %u = tfm.linear %z, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %y0, %s : !x, !x
  tfm.return %y : !x
}

// Each intermediate value with a second use.
// CHECK-LABEL: tfm.func @layer_used
// CHECK-NOT: lora_linear
tfm.func @layer_used(%x: !x, %w: !w, %a: !a, %b: !b) -> (!x, !x) {
  %y0 = tfm.linear %x, %w : !x, !w
  %u = tfm.linear %x, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %y0, %s : !x, !x
  tfm.return %y, %y0 : !x, !x
}

// CHECK-LABEL: tfm.func @scaled_used
// CHECK-NOT: lora_linear
tfm.func @scaled_used(%x: !x, %w: !w, %a: !a, %b: !b) -> (!x, !x) {
  %y0 = tfm.linear %x, %w : !x, !w
  %u = tfm.linear %x, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %y0, %s : !x, !x
  tfm.return %y, %s : !x, !x
}

// CHECK-LABEL: tfm.func @up_used
// CHECK-NOT: lora_linear
tfm.func @up_used(%x: !x, %w: !w, %a: !a, %b: !b) -> (!x, !x) {
  %y0 = tfm.linear %x, %w : !x, !w
  %u = tfm.linear %x, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %y0, %s : !x, !x
  tfm.return %y, %v : !x, !x
}

// CHECK-LABEL: tfm.func @down_used
// CHECK-NOT: lora_linear
tfm.func @down_used(%x: !x, %w: !w, %a: !a, %b: !b) -> (!x, !u) {
  %y0 = tfm.linear %x, %w : !x, !w
  %u = tfm.linear %x, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %y0, %s : !x, !x
  tfm.return %y, %u : !x, !u
}

// CHECK-LABEL: tfm.func @unbound
// CHECK-NOT: lora_linear
tfm.func @unbound(%x: !x, %w: !w, %a: !a, %b: !b) -> !x {
  %y0 = tfm.linear %x, %w : !x, !w
  %u = tfm.linear %x, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = #tfm.config<"scale">} : !x
  %y = tfm.add %y0, %s : !x, !x
  tfm.return %y : !x
}

// What the adapter drops becomes an attribute; another adapter may share it.
// CHECK-LABEL: tfm.func @dropout(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]:
// CHECK-NEXT: %[[Y:.+]], %{{.+}} = tfm.lora_linear %[[ARG0]], %{{.+}} {{.*}}mask = #tfm.dropout<rate = 1.000000e-01 : f64, site = 1>
// CHECK-NEXT: %[[Z:.+]], %{{.+}} = tfm.lora_linear %[[ARG0]], %{{.+}} {{.*}}mask = #tfm.dropout<rate = 1.000000e-01 : f64, site = 1>
// CHECK-NEXT: tfm.return %[[Y]], %[[Z]]
tfm.func @dropout(%x: !x, %w: !w, %a: !a, %b: !b) -> (!x, !x) {
  %d = tfm.dropout %x {mask = #tfm.dropout<rate = 0.1 : f64, site = 1>} : !x
  %y0 = tfm.linear %x, %w : !x, !w
  %u = tfm.linear %d, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %y0, %s : !x, !x
  %z0 = tfm.linear %x, %w : !x, !w
  %u1 = tfm.linear %d, %a : !x, !a
  %v1 = tfm.linear %u1, %b : !u, !b
  %s1 = tfm.scale %v1 {factor = 2.0} : !x
  %z = tfm.add %z0, %s1 : !x, !x
  tfm.return %y, %z : !x, !x
}

// CHECK-LABEL: tfm.func @dropout_of_another
// CHECK-NOT: lora_linear
tfm.func @dropout_of_another(%x: !x, %z: !x, %w: !w, %a: !a, %b: !b) -> !x {
  %d = tfm.dropout %z {mask = #tfm.dropout<rate = 0.1 : f64, site = 1>} : !x
  %y0 = tfm.linear %x, %w : !x, !w
  %u = tfm.linear %d, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %y0, %s : !x, !x
  tfm.return %y : !x
}

// What the layer drops itself is its input.
// CHECK-LABEL: tfm.func @dropout_of_both(
// CHECK: %[[D:.+]] = tfm.dropout
// CHECK-NEXT: tfm.lora_linear %[[D]], %{{.+}} {adapted = array<i1: true>, parts = array<i64: 64>, scale
tfm.func @dropout_of_both(%x: !x, %w: !w, %a: !a, %b: !b) -> !x {
  %d = tfm.dropout %x {mask = #tfm.dropout<rate = 0.1 : f64, site = 1>} : !x
  %y0 = tfm.linear %d, %w : !x, !w
  %u = tfm.linear %d, %a : !x, !a
  %v = tfm.linear %u, %b : !u, !b
  %s = tfm.scale %v {factor = 2.0} : !x
  %y = tfm.add %y0, %s : !x, !x
  tfm.return %y : !x
}
