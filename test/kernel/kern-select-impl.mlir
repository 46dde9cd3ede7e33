// RUN: %opt %s --kern-select-impl=impl=library | FileCheck %s
// RUN: %opt %s --kern-select-impl | FileCheck %s
// RUN: %opt %s --kern-select-impl=library-types=f32,bf16,f64 | FileCheck %s --check-prefix=GPU
// RUN: %opt %s --kern-select-impl=impl=emitted | FileCheck %s --check-prefix=EMITTED

tfm.architecture @m {
  // The CPU's library takes f32 and bf16; other types are emitted whatever is asked
  // for.
  // GPU-NOT: kern.call
  // CHECK: kern.func @matmul
  // CHECK-LABEL: tfm.func @plain
  // CHECK-NEXT: kern.gemm
  // EMITTED-LABEL: tfm.func @plain
  // EMITTED-NEXT: kern.call @{{matmul[a-z0-9_]*}}(%arg0, %arg1) into(%arg2) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} : (tensor<128x64xf32>, tensor<32x64xf32>) into(tensor<128x32xf32>)
  tfm.func @plain(%x: tensor<128x64xf32>, %w: tensor<32x64xf32>, %y: tensor<128x32xf32>) -> tensor<128x32xf32> {
    %0 = kern.gemm %x, %w into %y {trans_b, alpha = 1.0, beta = 0.0,
      m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 32, cap = 32>,
      k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 32} : tensor<128x64xf32>, tensor<32x64xf32> into tensor<128x32xf32>
    tfm.return %0 : tensor<128x32xf32>
  }
  // CHECK-LABEL: tfm.func @double
  // CHECK-NEXT: kern.call @matmul
  // EMITTED-LABEL: tfm.func @double
  // EMITTED-NEXT: kern.call @matmul
  tfm.func @double(%x: tensor<128x64xf64>, %w: tensor<32x64xf64>, %y: tensor<128x32xf64>) -> tensor<128x32xf64> {
    %0 = kern.gemm %x, %w into %y {trans_b, alpha = 1.0, beta = 1.0,
      m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 32, cap = 32>,
      k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 32} : tensor<128x64xf64>, tensor<32x64xf64> into tensor<128x32xf64>
    tfm.return %0 : tensor<128x32xf64>
  }
  // CHECK-LABEL: tfm.func @half
  // CHECK-NEXT: kern.gemm
  // EMITTED-LABEL: tfm.func @half
  // EMITTED-NEXT: kern.call @matmul_nt_64x32_bf16_f32
  tfm.func @half(%x: tensor<128x64xbf16>, %w: tensor<32x64xbf16>, %y: tensor<128x32xf32>) -> tensor<128x32xf32> {
    %0 = kern.gemm %x, %w into %y {trans_b, alpha = 1.0, beta = 0.0,
      m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 32, cap = 32>,
      k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 32} : tensor<128x64xbf16>, tensor<32x64xbf16> into tensor<128x32xf32>
    tfm.return %0 : tensor<128x32xf32>
  }
  // A transposed `a` has its rows contracted: their number is an extent.
  // EMITTED-LABEL: tfm.func @transposed
  // EMITTED-NEXT: kern.call @{{.*}}(%arg0, %arg1) into(%arg2) grid = <add = 64, cap = 64> {extents = [#kern.extent<scalar = "tokens", cap = 128>], scalars = []}
  tfm.func @transposed(%x: tensor<128x64xf32>, %w: tensor<128x32xf32>, %y: tensor<64x32xf32>) -> tensor<64x32xf32> {
    %0 = kern.gemm %x, %w into %y {trans_a, alpha = 1.0, beta = 0.0,
      m = #kern.extent<add = 64, cap = 64>, n = #kern.extent<add = 32, cap = 32>,
      k = #kern.extent<scalar = "tokens", cap = 128>, lda = 64, ldb = 32, ldc = 32} : tensor<128x64xf32>, tensor<128x32xf32> into tensor<64x32xf32>
    tfm.return %0 : tensor<64x32xf32>
  }
}
