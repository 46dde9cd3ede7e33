// RUN: %opt %s --kern-dedup | FileCheck %s

// Equal bodies are one kernel, named for the family; other bodies of the family
// are numbered in the order of their first callers. A new name may be another
// kernel's old one.
// CHECK-LABEL: tfm.architecture @m
// CHECK-COUNT-4: kern.func @
// CHECK-NOT: kern.func @
// CHECK-LABEL: tfm.func @f
// CHECK-NEXT: kern.call @scale(%arg0)
// CHECK-NEXT: kern.call @scale(%arg0)
// CHECK-NEXT: kern.call @scale.1(%arg0)
// CHECK-NEXT: kern.call @scale.2(%arg0)
// CHECK-NEXT: kern.call @q8(%arg0)
tfm.architecture @m {
  // A number that is part of the name stays.
  kern.func @q8(%x: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
    %0 = memref.load %x[%i] : memref<?xf32>
    memref.store %0, %y[%i] : memref<?xf32>
  }
  // Another type of argument.
  kern.func @scale(%x: memref<4xf32>, %y: memref<?xf32>) grid(%i) {
    %0 = memref.load %x[%i] : memref<4xf32>
    %1 = arith.addf %0, %0 : f32
    memref.store %1, %y[%i] : memref<?xf32>
  }
  // Another operation.
  kern.func @scale_2(%x: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
    %0 = memref.load %x[%i] : memref<?xf32>
    %1 = arith.mulf %0, %0 : f32
    memref.store %1, %y[%i] : memref<?xf32>
  }
  // The same but for the names of values.
  kern.func @scale_1(%a: memref<?xf32>, %b: memref<?xf32>) grid(%j) {
    %x = memref.load %a[%j] : memref<?xf32>
    %y = arith.addf %x, %x : f32
    memref.store %y, %b[%j] : memref<?xf32>
  }
  kern.func @scale_0(%x: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
    %0 = memref.load %x[%i] : memref<?xf32>
    %1 = arith.addf %0, %0 : f32
    memref.store %1, %y[%i] : memref<?xf32>
  }
  tfm.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) {
    %0 = kern.call @scale_0(%x) into(%y) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (tensor<4xf32>) into(tensor<4xf32>)
    %1 = kern.call @scale_1(%x) into(%y) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (tensor<4xf32>) into(tensor<4xf32>)
    %2 = kern.call @scale_2(%x) into(%y) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (tensor<4xf32>) into(tensor<4xf32>)
    %3 = kern.call @scale(%x) into(%y) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (tensor<4xf32>) into(tensor<4xf32>)
    %4 = kern.call @q8(%x) into(%y) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (tensor<4xf32>) into(tensor<4xf32>)
    tfm.return
  }
}
