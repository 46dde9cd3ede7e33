// RUN: fsdpq-opt %s --kern-to-llvm | FileCheck %s
//
// Also the body that the unit test CpuKernels runs.

#line = affine_map<(d0) -> (d0)>
// CHECK-DAG: llvm.func @silu_1536(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.func @silu_100_f64(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)

kern.func @silu_1536(%x: memref<?x3072xf32>, %y: memref<?x1536xf32>) grid(%row) {
  %c0 = arith.constant 0 : index
  %cF = arith.constant 1536 : index
  %one = arith.constant 1.0 : f32
  %gate = kern.load %x[%row, %c0] : memref<?x3072xf32> -> tensor<1536xf32>
  %up = kern.load %x[%row, %cF] : memref<?x3072xf32> -> tensor<1536xf32>
  %e = tensor.empty() : tensor<1536xf32>
  %sig = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]}
      ins(%gate : tensor<1536xf32>) outs(%e : tensor<1536xf32>) {
  ^bb0(%g: f32, %o: f32):
    %n = arith.negf %g : f32
    %x0 = math.exp %n : f32
    %d = arith.addf %x0, %one : f32
    %r = arith.divf %g, %d : f32
    linalg.yield %r : f32
  } -> tensor<1536xf32>
  %ys = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      ins(%sig, %up : tensor<1536xf32>, tensor<1536xf32>) outs(%e : tensor<1536xf32>) {
  ^bb0(%g: f32, %u: f32, %o: f32):
    %r = arith.mulf %g, %u : f32
    linalg.yield %r : f32
  } -> tensor<1536xf32>
  kern.store %ys, %y[%row, %c0] : tensor<1536xf32> -> memref<?x1536xf32>
}


kern.func @silu_100_f64(%x: memref<?x200xf64>, %y: memref<?x100xf64>) grid(%row) {
  %c0 = arith.constant 0 : index
  %cF = arith.constant 100 : index
  %one = arith.constant 1.0 : f64
  %gate = kern.load %x[%row, %c0] : memref<?x200xf64> -> tensor<100xf64>
  %up = kern.load %x[%row, %cF] : memref<?x200xf64> -> tensor<100xf64>
  %e = tensor.empty() : tensor<100xf64>
  %sig = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]}
      ins(%gate : tensor<100xf64>) outs(%e : tensor<100xf64>) {
  ^bb0(%g: f64, %o: f64):
    %n = arith.negf %g : f64
    %x0 = math.exp %n : f64
    %d = arith.addf %x0, %one : f64
    %r = arith.divf %g, %d : f64
    linalg.yield %r : f64
  } -> tensor<100xf64>
  %ys = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      ins(%sig, %up : tensor<100xf64>, tensor<100xf64>) outs(%e : tensor<100xf64>) {
  ^bb0(%g: f64, %u: f64, %o: f64):
    %r = arith.mulf %g, %u : f64
    linalg.yield %r : f64
  } -> tensor<100xf64>
  kern.store %ys, %y[%row, %c0] : tensor<100xf64> -> memref<?x100xf64>
}
