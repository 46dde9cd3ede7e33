// RUN: %opt %s --verify-diagnostics --split-input-file --kern-select-impl=impl=emitted
// RUN: not %opt %s --split-input-file --kern-select-impl=impl=hand 2>&1 | FileCheck %s
// CHECK: [FSDPQ-0410] impl = 'hand'; known: library, emitted

tfm.architecture @m {
  tfm.func @pitch(%x: tensor<128x64xf32>, %w: tensor<32x64xf32>, %y: tensor<128x32xf32>) -> tensor<128x32xf32> {
    // expected-error@+1 {{[FSDPQ-0411] an emitted product of parts of wider matrices is not supported; use impl = "library"}}
    %0 = kern.gemm %x, %w into %y {trans_b, alpha = 1.0, beta = 0.0,
      m = #kern.extent<add = 128, cap = 128>, n = #kern.extent<add = 32, cap = 32>,
      k = #kern.extent<add = 32, cap = 32>, lda = 64, ldb = 64, ldc = 32} : tensor<128x64xf32>, tensor<32x64xf32> into tensor<128x32xf32>
    tfm.return %0 : tensor<128x32xf32>
  }
}

// -----

tfm.architecture @m {
  tfm.func @offset(%x: tensor<128x64xf32>, %w: tensor<32x64xf32>, %y: tensor<128x32xf32>) -> tensor<128x32xf32> {
    // expected-error@+1 {{[FSDPQ-0411]}}
    %0 = kern.gemm %x, %w into %y {trans_b, alpha = 1.0, beta = 0.0,
      m = #kern.extent<add = 64, cap = 64>, n = #kern.extent<add = 32, cap = 32>, a_offset = 64,
      k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 32} : tensor<128x64xf32>, tensor<32x64xf32> into tensor<128x32xf32>
    tfm.return %0 : tensor<128x32xf32>
  }
}

// -----

tfm.architecture @m {
  tfm.func @transposed(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {
    // expected-error@+1 {{[FSDPQ-0412] an emitted product of two transposed matrices is not supported; use impl = "library"}}
    %0 = kern.gemm %x, %x into %y {trans_a, trans_b, alpha = 1.0, beta = 0.0,
      m = #kern.extent<add = 64, cap = 64>, n = #kern.extent<add = 64, cap = 64>,
      k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 64} : tensor<64x64xf32>, tensor<64x64xf32> into tensor<64x64xf32>
    tfm.return %0 : tensor<64x64xf32>
  }
}
