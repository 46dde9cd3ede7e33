// RUN: fsdpq-opt %s --kern-to-llvm | FileCheck %s
//
// Also the body that the unit test CpuKernels runs.

#line = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
// CHECK-DAG: llvm.func @cross_entropy_49152(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.func @cross_entropy_128256(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// Too large for the frame: both work in place or fail.

// Logits become their gradient.
kern.func @cross_entropy_49152(%logits: memref<?x49152xf32>, %labels: memref<?xi32>, %losses: memref<?xf32>,
                  %weight: f64) grid(%row) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -3.0e38 : f32
  %one = arith.constant 1.0 : f32
  %w = arith.truncf %weight : f64 to f32
  %label = memref.load %labels[%row] : memref<?xi32>
  %labelIndex = arith.index_cast %label : i32 to index
  %xs = kern.load %logits[%row, %c0] : memref<?x49152xf32> -> tensor<49152xf32>
  %e0 = tensor.empty() : tensor<f32>
  %m0 = linalg.fill ins(%lowest : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %mt = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%xs : tensor<49152xf32>) outs(%m0 : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %r = arith.maxnumf %a, %s fastmath<nnan,nsz,reassoc> : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %m = tensor.extract %mt[] : tensor<f32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %st = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%xs : tensor<49152xf32>) outs(%s0 : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %d = arith.subf %a, %m : f32
    %x = math.exp %d : f32
    %r = arith.addf %x, %s fastmath<reassoc> : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %s = tensor.extract %st[] : tensor<f32>
  %target = tensor.extract %xs[%labelIndex] : tensor<49152xf32>
  %logSum = math.log %s : f32
  %lse = arith.addf %logSum, %m : f32
  %loss = arith.subf %lse, %target : f32
  memref.store %loss, %losses[%row] : memref<?xf32>
  %inverse = arith.divf %w, %s : f32
  %e = tensor.empty() : tensor<49152xf32>
  %gs = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]}
      ins(%xs : tensor<49152xf32>) outs(%e : tensor<49152xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %x = math.exp %d : f32
    %p = arith.mulf %x, %inverse : f32
    linalg.yield %p : f32
  } -> tensor<49152xf32>
  kern.store %gs, %logits[%row, %c0] : tensor<49152xf32> -> memref<?x49152xf32>
  %p = memref.load %logits[%row, %labelIndex] : memref<?x49152xf32>
  %g = arith.subf %p, %w : f32
  memref.store %g, %logits[%row, %labelIndex] : memref<?x49152xf32>
}


// Logits become their gradient.
kern.func @cross_entropy_128256(%logits: memref<?x128256xf32>, %labels: memref<?xi32>, %losses: memref<?xf32>,
                  %weight: f64) grid(%row) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -3.0e38 : f32
  %one = arith.constant 1.0 : f32
  %w = arith.truncf %weight : f64 to f32
  %label = memref.load %labels[%row] : memref<?xi32>
  %labelIndex = arith.index_cast %label : i32 to index
  %xs = kern.load %logits[%row, %c0] : memref<?x128256xf32> -> tensor<128256xf32>
  %e0 = tensor.empty() : tensor<f32>
  %m0 = linalg.fill ins(%lowest : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %mt = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%xs : tensor<128256xf32>) outs(%m0 : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %r = arith.maxnumf %a, %s fastmath<nnan,nsz,reassoc> : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %m = tensor.extract %mt[] : tensor<f32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %st = linalg.generic {indexing_maps = [#line, #none], iterator_types = ["reduction"]}
      ins(%xs : tensor<128256xf32>) outs(%s0 : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %d = arith.subf %a, %m : f32
    %x = math.exp %d : f32
    %r = arith.addf %x, %s fastmath<reassoc> : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %s = tensor.extract %st[] : tensor<f32>
  %target = tensor.extract %xs[%labelIndex] : tensor<128256xf32>
  %logSum = math.log %s : f32
  %lse = arith.addf %logSum, %m : f32
  %loss = arith.subf %lse, %target : f32
  memref.store %loss, %losses[%row] : memref<?xf32>
  %inverse = arith.divf %w, %s : f32
  %e = tensor.empty() : tensor<128256xf32>
  %gs = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]}
      ins(%xs : tensor<128256xf32>) outs(%e : tensor<128256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %x = math.exp %d : f32
    %p = arith.mulf %x, %inverse : f32
    linalg.yield %p : f32
  } -> tensor<128256xf32>
  kern.store %gs, %logits[%row, %c0] : tensor<128256xf32> -> memref<?x128256xf32>
  %p = memref.load %logits[%row, %labelIndex] : memref<?x128256xf32>
  %g = arith.subf %p, %w : f32
  memref.store %g, %logits[%row, %labelIndex] : memref<?x128256xf32>
}
