// RUN: fsdpq-opt %s --kern-to-llvm | FileCheck %s
//
// Also the body that the unit test CpuKernels runs.

#line = affine_map<(d0) -> (d0)>
// All three results are computed where they are stored.
// CHECK: llvm.func internal @adamw.items
// CHECK-NOT: llvm.alloca
// CHECK: llvm.func @adamw(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)

kern.func @adamw(%p: memref<?xf32>, %g: memref<?xf32>, %m: memref<?xf32>, %v: memref<?xf32>,
                 %lr: f64, %correction1: f64, %correction2: f64) grid(%chunk) {
  %size = arith.constant 1024 : index
  %beta1 = arith.constant 0.9 : f32
  %rest1 = arith.constant 0.1 : f32
  %beta2 = arith.constant 0.999 : f32
  %rest2 = arith.constant 0.001 : f32
  %eps = arith.constant 1.0e-8 : f32
  %decay = arith.constant 0.01 : f32
  %rate = arith.truncf %lr : f64 to f32
  %bias1 = arith.truncf %correction1 : f64 to f32
  %bias2 = arith.truncf %correction2 : f64 to f32
  %at = arith.muli %chunk, %size : index
  %ps = kern.load %p[%at] : memref<?xf32> -> tensor<1024xf32>
  %gs = kern.load %g[%at] : memref<?xf32> -> tensor<1024xf32>
  %ms = kern.load %m[%at] : memref<?xf32> -> tensor<1024xf32>
  %vs = kern.load %v[%at] : memref<?xf32> -> tensor<1024xf32>
  %e = tensor.empty() : tensor<1024xf32>
  %new:3 = linalg.generic {indexing_maps = [#line, #line, #line, #line, #line, #line, #line], iterator_types = ["parallel"]}
      ins(%ps, %gs, %ms, %vs : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) outs(%e, %e, %e : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) {
  ^bb0(%pi: f32, %gi: f32, %mi: f32, %vi: f32, %o0: f32, %o1: f32, %o2: f32):
    %m0 = arith.mulf %mi, %beta1 : f32
    %m1 = arith.mulf %gi, %rest1 : f32
    %mn = arith.addf %m0, %m1 : f32
    %v0 = arith.mulf %vi, %beta2 : f32
    %g2 = arith.mulf %gi, %gi : f32
    %v1 = arith.mulf %g2, %rest2 : f32
    %vn = arith.addf %v0, %v1 : f32
    %vh = arith.divf %vn, %bias2 : f32
    %root = math.sqrt %vh : f32
    %d = arith.addf %root, %eps : f32
    %mh = arith.divf %mn, %bias1 : f32
    %u = arith.divf %mh, %d : f32
    %pd = arith.mulf %pi, %decay : f32
    %ud = arith.addf %u, %pd : f32
    %step = arith.mulf %ud, %rate : f32
    %pn = arith.subf %pi, %step : f32
    linalg.yield %pn, %mn, %vn : f32, f32, f32
  } -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>)
  kern.store %new#0, %p[%at] : tensor<1024xf32> -> memref<?xf32>
  kern.store %new#1, %m[%at] : tensor<1024xf32> -> memref<?xf32>
  kern.store %new#2, %v[%at] : tensor<1024xf32> -> memref<?xf32>
}
