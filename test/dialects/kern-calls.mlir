// RUN: %opt %s | %opt | FileCheck %s
// RUN: %opt %s --mlir-print-op-generic | %opt | FileCheck %s
//
// The ops of kern that stand in programs; those of kernels' bodies are in
// test/kern.

!x = tensor<512x64xf32, #tfm.dims<"T", "">>
!q = tensor<64x64x!qt.nf4<block = 64, scale = f32>>

// CHECK-LABEL: tfm.architecture @a
tfm.architecture @a {
  kern.func @dequantize(%codes: memref<?xi8>, %absmax: memref<?xf32>, %y: memref<?xf32>, %n: i64, %s: f64) grid(%i) {
  }
  kern.func @splat(%y: memref<?x64xf32>, %s: f64) grid(%i) {
  }

  // CHECK-LABEL: tfm.func @f
  tfm.func @f(%x: !x, %w: tensor<64x64xf32>, %q: !q) {
    // CHECK: %[[E:.*]] = kern.empty : tensor<512x64xf32, #dims_T_>
    %e = kern.empty : !x
    // CHECK: %[[P:.*]] = kern.port "loss" : tensor<1xf32>
    %p = kern.port "loss" : tensor<1xf32>
    // CHECK: kern.fill into %[[P]] : tensor<1xf32>
    %z = kern.fill into %p : tensor<1xf32>
    // CHECK: kern.copy %arg0 into %[[E]] : tensor<512x64xf32, #dims_T_> into tensor<512x64xf32, #dims_T_>
    %c = kern.copy %x into %e : !x into !x
    // A quantised operand gives each of its stored arrays.
    // CHECK: kern.call @dequantize(%arg2) into(%arg1) grid = <add = 64, cap = 64>
    // CHECK-SAME: {extents = [#kern.extent<scalar = "tokens", cap = 512>], out_offsets = array<i64: 128>, scalars = ["lr"]}
    // CHECK-SAME: : (tensor<64x64x!qt.nf4<block = 64, scale = f32>>) into(tensor<64x64xf32>)
    %d = kern.call @dequantize(%q) into(%w) grid = #kern.extent<add = 64, cap = 64>
      {extents = [#kern.extent<scalar = "tokens", cap = 512>], scalars = ["lr"],
       out_offsets = array<i64: 128>} : (!q) into(tensor<64x64xf32>)
    // CHECK: kern.call @splat() into(%[[E]]) grid
    %s = kern.call @splat() into(%e) grid = #kern.extent<scalar = "tokens", cap = 512>
      {extents = [], scalars = ["lr"]} : into(!x)
    // CHECK: kern.gemm %arg0, %arg1 into %[[E]]
    // CHECK-SAME: a_offset = 64 : i64, alpha = 2.000000e+00 : f64, beta = 1.000000e+00 : f64, c_offset = 3 : i64
    // CHECK-SAME: lda = 128 : i64, ldb = 64 : i64, ldc = 64 : i64
    // CHECK-SAME: trans_b
    %y = kern.gemm %x, %w into %e {trans_b, alpha = 2.0, beta = 1.0,
      m = #kern.extent<scalar = "tokens", cap = 512>, n = #kern.extent<add = 64, cap = 64>,
      k = #kern.extent<add = 64, cap = 64>, lda = 128, ldb = 64, ldc = 64,
      a_offset = 64, c_offset = 3} : !x, tensor<64x64xf32> into !x
    tfm.return
  }
}
