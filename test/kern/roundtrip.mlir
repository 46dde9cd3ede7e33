// RUN: fsdpq-opt %s | fsdpq-opt | FileCheck %s
// RUN: fsdpq-opt %s --mlir-print-op-generic | fsdpq-opt | FileCheck %s

// CHECK-LABEL: kern.func @copy(%arg0: memref<?x4x64xf32>, %arg1: memref<?x4x64xf32>, %arg2: i64, %arg3: f64) grid(%arg4)
// CHECK-SAME: attributes {schedule = #kern.schedule<vector = 16, register_tile = [8, 2]>} {
// CHECK:   %[[T:.*]] = kern.load %arg0[%arg4, %{{.*}}, %{{.*}}] : memref<?x4x64xf32> -> tensor<4x64xf32>
// CHECK:   kern.store %[[T]], %arg1[%arg4, %{{.*}}, %{{.*}}] : tensor<4x64xf32> -> memref<?x4x64xf32>
// CHECK-NOT: kern.return
kern.func @copy(%x: memref<?x4x64xf32>, %y: memref<?x4x64xf32>, %n: i64, %s: f64) grid(%row)
    attributes {schedule = #kern.schedule<register_tile = [8, 2], vector = 16>} {
  %c0 = arith.constant 0 : index
  %t = kern.load %x[%row, %c0, %c0] : memref<?x4x64xf32> -> tensor<4x64xf32>
  kern.store %t, %y[%row, %c0, %c0] : tensor<4x64xf32> -> memref<?x4x64xf32>
}

// CHECK-LABEL: kern.func @table(%arg0: memref<?xi32>, %arg1: memref<?xf32>) grid(%arg2) {
// CHECK:   kern.lookup %{{.*}}, dense<[0.000000e+00, 1.000000e+00]> : tensor<2xf32> : i32 -> f32
kern.func @table(%x: memref<?xi32>, %y: memref<?xf32>) grid(%i) {
  %code = memref.load %x[%i] : memref<?xi32>
  %v = kern.lookup %code, dense<[0.0, 1.0]> : tensor<2xf32> : i32 -> f32
  memref.store %v, %y[%i] : memref<?xf32>
}

// CHECK-LABEL: kern.func @nothing() grid(%arg0) attributes {schedule = #kern.schedule<vector = 8>} {
kern.func @nothing() grid(%i) attributes {schedule = #kern.schedule<vector = 8>} {
}

// CHECK-LABEL: kern.func @prepared() grid(%arg0)
// CHECK-SAME: attributes {emission = #kern.emission<family = "rows", threads = 64, group = 8, teams = 4, blocks = 2>, kern.family = {kind = "some"}} {
kern.func @prepared() grid(%i)
    attributes {emission = #kern.emission<family = "rows", threads = 64, group = 8, teams = 4, shared = 0, blocks = 2>,
                kern.family = {kind = "some"}} {
}
