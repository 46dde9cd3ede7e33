// RUN: fsdpq-opt %s --kern-to-llvm | FileCheck %s
// RUN: fsdpq-opt %s --kern-to-llvm=vector-bits=256 | FileCheck %s --check-prefix=AVX2
//
// Also the body that the unit test CpuKernels runs.

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// Both may be contracted to one fma, because the body says so.
// CHECK: llvm.fmul %{{.*}}, %{{.*}} {fastmathFlags = #llvm.fastmath<contract>} : vector<16xf32>
// CHECK: llvm.fadd %{{.*}}, %{{.*}} {fastmathFlags = #llvm.fastmath<contract>} : vector<16xf32>
// AVX2: llvm.fmul %{{.*}} : vector<8xf32>
// AVX2-NOT: vector<16xf32>
// CHECK-DAG: llvm.func @nn(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.func @tn(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.func @nt(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.func @tt(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.func @nt_f64(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)

kern.func @nn(%a: memref<13x29xf32>, %b: memref<29x37xf32>, %c: memref<13x37xf32>) grid(%item) {
  %c0 = arith.constant 0 : index
  %as = kern.load %a[%c0, %c0] : memref<13x29xf32> -> tensor<13x29xf32>
  %bs = kern.load %b[%c0, %c0] : memref<29x37xf32> -> tensor<29x37xf32>
  %cs = kern.load %c[%c0, %c0] : memref<13x37xf32> -> tensor<13x37xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%as, %bs : tensor<13x29xf32>, tensor<29x37xf32>) outs(%cs : tensor<13x37xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y fastmath<contract> : f32
    %s = arith.addf %z, %p fastmath<contract> : f32
    linalg.yield %s : f32
  } -> tensor<13x37xf32>
  kern.store %r, %c[%c0, %c0] : tensor<13x37xf32> -> memref<13x37xf32>
}


kern.func @tn(%a: memref<64x32xf32>, %b: memref<64x48xf32>, %c: memref<32x48xf32>) grid(%item) {
  %c0 = arith.constant 0 : index
  %as = kern.load %a[%c0, %c0] : memref<64x32xf32> -> tensor<64x32xf32>
  %bs = kern.load %b[%c0, %c0] : memref<64x48xf32> -> tensor<64x48xf32>
  %cs = kern.load %c[%c0, %c0] : memref<32x48xf32> -> tensor<32x48xf32>
  %r = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%as, %bs : tensor<64x32xf32>, tensor<64x48xf32>) outs(%cs : tensor<32x48xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y fastmath<contract> : f32
    %s = arith.addf %z, %p fastmath<contract> : f32
    linalg.yield %s : f32
  } -> tensor<32x48xf32>
  kern.store %r, %c[%c0, %c0] : tensor<32x48xf32> -> memref<32x48xf32>
}


kern.func @nt(%a: memref<16x80xf32>, %b: memref<100x80xf32>, %c: memref<16x100xf32>) grid(%item) {
  %c0 = arith.constant 0 : index
  %as = kern.load %a[%c0, %c0] : memref<16x80xf32> -> tensor<16x80xf32>
  %bs = kern.load %b[%c0, %c0] : memref<100x80xf32> -> tensor<100x80xf32>
  %cs = kern.load %c[%c0, %c0] : memref<16x100xf32> -> tensor<16x100xf32>
  %r = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%as, %bs : tensor<16x80xf32>, tensor<100x80xf32>) outs(%cs : tensor<16x100xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y fastmath<contract> : f32
    %s = arith.addf %z, %p fastmath<contract> : f32
    linalg.yield %s : f32
  } -> tensor<16x100xf32>
  kern.store %r, %c[%c0, %c0] : tensor<16x100xf32> -> memref<16x100xf32>
}


kern.func @tt(%a: memref<32x9xf32>, %b: memref<64x32xf32>, %c: memref<9x64xf32>) grid(%item) {
  %c0 = arith.constant 0 : index
  %as = kern.load %a[%c0, %c0] : memref<32x9xf32> -> tensor<32x9xf32>
  %bs = kern.load %b[%c0, %c0] : memref<64x32xf32> -> tensor<64x32xf32>
  %cs = kern.load %c[%c0, %c0] : memref<9x64xf32> -> tensor<9x64xf32>
  %r = linalg.generic {indexing_maps = [#km, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%as, %bs : tensor<32x9xf32>, tensor<64x32xf32>) outs(%cs : tensor<9x64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y fastmath<contract> : f32
    %s = arith.addf %z, %p fastmath<contract> : f32
    linalg.yield %s : f32
  } -> tensor<9x64xf32>
  kern.store %r, %c[%c0, %c0] : tensor<9x64xf32> -> memref<9x64xf32>
}


kern.func @nt_f64(%a: memref<8x12xf64>, %b: memref<20x12xf64>, %c: memref<8x20xf64>) grid(%item) {
  %c0 = arith.constant 0 : index
  %as = kern.load %a[%c0, %c0] : memref<8x12xf64> -> tensor<8x12xf64>
  %bs = kern.load %b[%c0, %c0] : memref<20x12xf64> -> tensor<20x12xf64>
  %cs = kern.load %c[%c0, %c0] : memref<8x20xf64> -> tensor<8x20xf64>
  %r = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%as, %bs : tensor<8x12xf64>, tensor<20x12xf64>) outs(%cs : tensor<8x20xf64>) {
  ^bb0(%x: f64, %y: f64, %z: f64):
    %p = arith.mulf %x, %y fastmath<contract> : f64
    %s = arith.addf %z, %p fastmath<contract> : f64
    linalg.yield %s : f64
  } -> tensor<8x20xf64>
  kern.store %r, %c[%c0, %c0] : tensor<8x20xf64> -> memref<8x20xf64>
}
