// RUN: fsdpq-opt %s --kern-to-llvm | FileCheck %s --implicit-check-not=bf16
//
// Nothing is left to a run-time library, whatever the CPU can do: values are
// rounded to bf16 by integer arithmetic, and bf16 is 16 bits to LLVM.

// CHECK-LABEL: llvm.func internal @splat_f64.items
// CHECK: %[[SINGLE:.*]] = llvm.fptrunc %{{.*}} : f64 to f32
// CHECK: llvm.bitcast %[[SINGLE]] : f32 to i32
kern.func @splat_f64(%out: memref<?x1xbf16>, %value: f64) grid(%row) {
  %c0 = arith.constant 0 : index
  %rounded = arith.truncf %value : f64 to bf16
  %e = tensor.empty() : tensor<1xbf16>
  %tile = linalg.fill ins(%rounded : bf16) outs(%e : tensor<1xbf16>) -> tensor<1xbf16>
  kern.store %tile, %out[%row, %c0] : tensor<1xbf16> -> memref<?x1xbf16>
}

// What is chosen among are bits; 16256 is 1.0.
// CHECK-LABEL: llvm.func internal @choose.items
// CHECK-DAG: llvm.mlir.constant(16256 : i16) : i16
// CHECK: llvm.select %{{.*}}, %{{.*}}, %{{.*}} : i1, i16
// CHECK: llvm.store %{{.*}} : i16
kern.func @choose(%out: memref<?x1xbf16>, %rows: memref<?xi32>) grid(%row) {
  %c0 = arith.constant 0 : index
  %none = arith.constant -1 : i32
  %one = arith.constant 1.0 : bf16
  %old = memref.load %out[%row, %c0] : memref<?x1xbf16>
  %number = memref.load %rows[%row] : memref<?xi32>
  %is_none = arith.cmpi eq, %number, %none : i32
  %new = arith.select %is_none, %one, %old : bf16
  memref.store %new, %out[%row, %c0] : memref<?x1xbf16>
}

// CHECK-LABEL: llvm.func internal @widen.items
// CHECK: llvm.fpext %{{.+}} : f32 to f64
kern.func @widen(%in: memref<?x1xbf16>, %out: memref<?x1xf64>) grid(%row) {
  %c0 = arith.constant 0 : index
  %value = memref.load %in[%row, %c0] : memref<?x1xbf16>
  %wide = arith.extf %value : bf16 to f64
  memref.store %wide, %out[%row, %c0] : memref<?x1xf64>
}
