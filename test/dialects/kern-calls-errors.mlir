// RUN: %opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{div must be positive, got 0}}
#a = #kern.extent<scalar = "tokens", div = 0, cap = 1>

// -----

// expected-error@+1 {{cap must not be negative, got -1}}
#b = #kern.extent<cap = -1>

// -----

tfm.func @callee(%x: tensor<4xf32>) {
  // expected-error@+1 {{calls @nothing, which is no kernel}}
  %y = kern.call @nothing(%x) into(%x) grid = #kern.extent<add = 1, cap = 1>
    {extents = [], scalars = []} : (tensor<4xf32>) into(tensor<4xf32>)
  tfm.return
}

// -----

// expected-note@+1 {{which takes 1}}
kern.func @k(%x: memref<?xf32>) grid(%i) {
}
tfm.func @arguments(%x: tensor<4xf32>, %q: tensor<64x!qt.nf4<block = 64, scale = dq<256>>>) {
  // The quantised operand counts as four arrays: codes, absmax_u8, nested_absmax, offset.
  // expected-error@+1 {{gives 5 arguments to @k}}
  %y = kern.call @k(%q) into(%x) grid = #kern.extent<add = 1, cap = 1>
    {extents = [], scalars = []} : (tensor<64x!qt.nf4<block = 64, scale = dq<256>>>) into(tensor<4xf32>)
  tfm.return
}

// -----

kern.func @k(%x: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
}
tfm.func @offsets(%x: tensor<4xf32>) {
  // expected-error@+1 {{has 2 offsets for 1 destinations}}
  %y = kern.call @k(%x) into(%x) grid = #kern.extent<add = 1, cap = 1>
    {extents = [], scalars = [], out_offsets = array<i64: 0, 1>} : (tensor<4xf32>) into(tensor<4xf32>)
  tfm.return
}

// -----

tfm.func @beta(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{needs beta 0 or 1, got 5.000000e-01}}
  %y = kern.gemm %x, %x into %x {alpha = 1.0, beta = 0.5,
    m = #kern.extent<add = 8, cap = 8>, n = #kern.extent<add = 8, cap = 8>, k = #kern.extent<add = 8, cap = 8>,
    lda = 8, ldb = 8, ldc = 8} : tensor<8x8xf32>, tensor<8x8xf32> into tensor<8x8xf32>
  tfm.return
}

// -----

tfm.func @pitchA(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{has rows of a 4 elements apart that are 8 wide}}
  %y = kern.gemm %x, %x into %x {alpha = 1.0, beta = 0.0,
    m = #kern.extent<add = 8, cap = 8>, n = #kern.extent<add = 8, cap = 8>, k = #kern.extent<add = 8, cap = 8>,
    lda = 4, ldb = 8, ldc = 8} : tensor<8x8xf32>, tensor<8x8xf32> into tensor<8x8xf32>
  tfm.return
}

// -----

tfm.func @pitchB(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{has rows of b 8 elements apart that are 16 wide}}
  %y = kern.gemm %x, %x into %x {trans_b, alpha = 1.0, beta = 0.0,
    m = #kern.extent<add = 4, cap = 4>, n = #kern.extent<add = 8, cap = 8>, k = #kern.extent<add = 16, cap = 16>,
    lda = 16, ldb = 8, ldc = 8} : tensor<8x8xf32>, tensor<8x8xf32> into tensor<8x8xf32>
  tfm.return
}

// -----

tfm.func @pitchC(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{has rows of c 4 elements apart that are 8 wide}}
  %y = kern.gemm %x, %x into %x {trans_a, alpha = 1.0, beta = 0.0,
    m = #kern.extent<add = 8, cap = 8>, n = #kern.extent<add = 8, cap = 8>, k = #kern.extent<add = 8, cap = 8>,
    lda = 8, ldb = 8, ldc = 4} : tensor<8x8xf32>, tensor<8x8xf32> into tensor<8x8xf32>
  tfm.return
}

// -----

// expected-note@+1 {{which is 'memref<?xf32>'}}
kern.func @k(%ids: memref<?xi32>, %x: memref<?xf32>) grid(%i) {
}
tfm.func @swapped(%ids: tensor<4xi32>, %x: tensor<4xf32>) {
  // expected-error@+1 {{gives 'tensor<4xi32>' as argument 1 of @k}}
  %y = kern.call @k(%ids) into(%ids) grid = #kern.extent<add = 1, cap = 1>
    {extents = [], scalars = []} : (tensor<4xi32>) into(tensor<4xi32>)
  tfm.return
}

// -----

// expected-note@+1 {{which is 'memref<?x64xf32>'}}
kern.func @k(%x: memref<?x64xf32>) grid(%i) {
}
tfm.func @columns(%x: tensor<4x32xf32>, %y: tensor<4x64xf32>) {
  // expected-error@+1 {{gives 'tensor<4x32xf32>' as argument 0 of @k}}
  "kern.call"(%x) <{callee = @k, grid = #kern.extent<add = 1, cap = 1>, extents = [], scalars = [],
    operandSegmentSizes = array<i32: 0, 1>}> : (tensor<4x32xf32>) -> tensor<4x32xf32>
  tfm.return
}

// -----

tfm.func @mixed(%x: tensor<8x8xf32>, %w: tensor<8x8xbf16>) {
  // expected-error@+1 {{makes elements of 'f32' from products of 'f32' and 'bf16'}}
  %y = kern.gemm %x, %w into %x {alpha = 1.0, beta = 0.0,
    m = #kern.extent<add = 8, cap = 8>, n = #kern.extent<add = 8, cap = 8>, k = #kern.extent<add = 8, cap = 8>,
    lda = 8, ldb = 8, ldc = 8} : tensor<8x8xf32>, tensor<8x8xbf16> into tensor<8x8xf32>
  tfm.return
}

// -----

tfm.func @narrower(%x: tensor<8x8xf32>, %y: tensor<8x8xbf16>) {
  // expected-error@+1 {{makes elements of 'bf16' from products of 'f32' and 'f32'}}
  %z = kern.gemm %x, %x into %y {alpha = 1.0, beta = 0.0,
    m = #kern.extent<add = 8, cap = 8>, n = #kern.extent<add = 8, cap = 8>, k = #kern.extent<add = 8, cap = 8>,
    lda = 8, ldb = 8, ldc = 8} : tensor<8x8xf32>, tensor<8x8xf32> into tensor<8x8xbf16>
  tfm.return
}
