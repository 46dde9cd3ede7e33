// RUN: fsdpq-opt %s --kern-to-llvm | FileCheck %s
//
// Also the body that the unit test CpuKernels runs.

#line = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
// CHECK-DAG: llvm.func @rms_norm_576(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.func @rms_norm_4096(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.func @rms_norm_100_f64(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)

kern.func @rms_norm_576(%x: memref<?x576xf32>, %w: memref<576xf32>, %y: memref<?x576xf32>) grid(%row) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %count = arith.constant 576.0 : f32
  %xs = kern.load %x[%row, %c0] : memref<?x576xf32> -> tensor<576xf32>
  %ws = kern.load %w[%c0] : memref<576xf32> -> tensor<576xf32>
  %e0 = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%xs : tensor<576xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %sq = arith.mulf %a, %a fastmath<contract> : f32
    %r = arith.addf %s, %sq fastmath<reassoc,contract> : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %total = tensor.extract %sum[] : tensor<f32>
  %mean = arith.divf %total, %count : f32
  %biased = arith.addf %mean, %eps : f32
  %inverse = math.rsqrt %biased : f32
  %e1 = tensor.empty() : tensor<576xf32>
  %ys = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      ins(%xs, %ws : tensor<576xf32>, tensor<576xf32>) outs(%e1 : tensor<576xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.mulf %a, %inverse : f32
    %r = arith.mulf %n, %b : f32
    linalg.yield %r : f32
  } -> tensor<576xf32>
  kern.store %ys, %y[%row, %c0] : tensor<576xf32> -> memref<?x576xf32>
}


kern.func @rms_norm_4096(%x: memref<?x4096xf32>, %w: memref<4096xf32>, %y: memref<?x4096xf32>) grid(%row) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %count = arith.constant 4096.0 : f32
  %xs = kern.load %x[%row, %c0] : memref<?x4096xf32> -> tensor<4096xf32>
  %ws = kern.load %w[%c0] : memref<4096xf32> -> tensor<4096xf32>
  %e0 = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%xs : tensor<4096xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %sq = arith.mulf %a, %a fastmath<contract> : f32
    %r = arith.addf %s, %sq fastmath<reassoc,contract> : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %total = tensor.extract %sum[] : tensor<f32>
  %mean = arith.divf %total, %count : f32
  %biased = arith.addf %mean, %eps : f32
  %inverse = math.rsqrt %biased : f32
  %e1 = tensor.empty() : tensor<4096xf32>
  %ys = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      ins(%xs, %ws : tensor<4096xf32>, tensor<4096xf32>) outs(%e1 : tensor<4096xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.mulf %a, %inverse : f32
    %r = arith.mulf %n, %b : f32
    linalg.yield %r : f32
  } -> tensor<4096xf32>
  kern.store %ys, %y[%row, %c0] : tensor<4096xf32> -> memref<?x4096xf32>
}


kern.func @rms_norm_100_f64(%x: memref<?x100xf64>, %w: memref<100xf64>, %y: memref<?x100xf64>) grid(%row) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %eps = arith.constant 1.0e-5 : f64
  %count = arith.constant 100.0 : f64
  %xs = kern.load %x[%row, %c0] : memref<?x100xf64> -> tensor<100xf64>
  %ws = kern.load %w[%c0] : memref<100xf64> -> tensor<100xf64>
  %e0 = tensor.empty() : tensor<f64>
  %init = linalg.fill ins(%zero : f64) outs(%e0 : tensor<f64>) -> tensor<f64>
  %sum = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%xs : tensor<100xf64>) outs(%init : tensor<f64>) {
  ^bb0(%a: f64, %s: f64):
    %sq = arith.mulf %a, %a fastmath<contract> : f64
    %r = arith.addf %s, %sq fastmath<reassoc,contract> : f64
    linalg.yield %r : f64
  } -> tensor<f64>
  %total = tensor.extract %sum[] : tensor<f64>
  %mean = arith.divf %total, %count : f64
  %biased = arith.addf %mean, %eps : f64
  %inverse = math.rsqrt %biased : f64
  %e1 = tensor.empty() : tensor<100xf64>
  %ys = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      ins(%xs, %ws : tensor<100xf64>, tensor<100xf64>) outs(%e1 : tensor<100xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %n = arith.mulf %a, %inverse : f64
    %r = arith.mulf %n, %b : f64
    linalg.yield %r : f64
  } -> tensor<100xf64>
  kern.store %ys, %y[%row, %c0] : tensor<100xf64> -> memref<?x100xf64>
}
