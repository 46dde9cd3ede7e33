// RUN: %opt %s --split-input-file --kern-outline | FileCheck %s

// Rows are items, and the rows that are in use bound the grid. Constants go into
// the kernels, not into calls. rope is in place.
//
// CHECK-LABEL: tfm.architecture @rows {
// CHECK-LABEL: tfm.func @f(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]: {{.*}}%[[ARG2:[a-z0-9]+]]: {{.*}}%[[ARG3:[a-z0-9]+]]: {{.*}}%[[ARG4:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[EMBEDDING:.*]] = kern.call @embedding_384x64_f32(%[[ARG3]], %[[ARG4]]) into(%[[EMPTY]])
// CHECK-SAME: grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []}
// CHECK-NEXT: %[[EMPTY2:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[EMPTY3:.*]] = kern.empty : tensor<128xf32{{.*}}
// CHECK-NEXT: %[[RMS_NORM:.*]]:2 = kern.call @rms_norm_64_f32(%[[ARG0]], %[[ARG1]]) into(%[[EMPTY2]], %[[EMPTY3]])
// CHECK-SAME: grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []}
// CHECK-NEXT: %[[EMPTY4:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[EMPTY5:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[EMPTY6:.*]] = kern.empty : tensor<128xf32{{.*}}
// CHECK-NEXT: %[[ADD_RMS_NORM:.*]]:3 = kern.call @add_rms_norm_64_f32(%[[ARG0]], %[[EMBEDDING]], %[[ARG1]])
// CHECK-SAME: into(%[[EMPTY4]], %[[EMPTY5]], %[[EMPTY6]]) grid = <scalar = "tokens", cap = 128>
// CHECK-SAME: {extents = [], scalars = []}
// CHECK-NEXT: %[[ROPE:.*]] = kern.call @rope_64_4x16_f32(%[[ARG2]]) into(%[[RMS_NORM]]#0)
// CHECK-SAME: grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []}
// CHECK-NEXT: %[[EMPTY7:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[GATED_SILU:.*]] = kern.call @gated_silu_64_f32(%[[ROPE]], %[[ADD_RMS_NORM]]#1) into(%[[EMPTY7]])
// CHECK-SAME: grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []}
// CHECK-NEXT: %[[EMPTY8:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[SILU:.*]] = kern.call @silu_64_f32(%[[ADD_RMS_NORM]]#0) into(%[[EMPTY8]])
// CHECK-SAME: grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []}
// CHECK-NEXT: %[[EMPTY9:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[MUL:.*]] = kern.call @mul_64_f32(%[[SILU]], %[[ADD_RMS_NORM]]#0) into(%[[EMPTY9]])
// CHECK-SAME: grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []}
// CHECK-NEXT: %[[EMPTY10:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[SCALE:.*]] = kern.call @scale_64_f32(%[[MUL]]) into(%[[EMPTY10]])
// CHECK-SAME: grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []}
// CHECK-NEXT: tfm.return %[[ROPE]], %[[GATED_SILU]], %[[SCALE]], %[[EMBEDDING]] : tensor<128x64xf32{{.*}}, tensor<128x64xf32{{.*}}, tensor<128x64xf32{{.*}}, tensor<128x64xf32{{.*}}

!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!r = tensor<128x16xf32, #tfm.dims<"T", "">>
tfm.architecture @rows {
  tfm.func @f(%x: !x, %w: tensor<64xf32>, %r: !r, %ids: !ids, %e: tensor<384x64xf32>) -> (!x, !x, !x, !x) {
    %x0 = tfm.embedding %ids, %e : !ids, tensor<384x64xf32>
    %y, %rstd = tfm.rms_norm %x, %w {eps = 1.0e-5} : !x, tensor<64xf32>
    %s, %y2, %rstd2 = tfm.add_rms_norm %x, %x0, %w {eps = 1.0e-5} : !x, !x, tensor<64xf32>
    %q = tfm.rope %y, %r {heads = 4 : i64} : !x, !r
    %g = tfm.gated_silu %q, %y2 : !x, !x
    %a = tfm.silu %s : !x
    %m = tfm.mul %a, %s : !x, !x
    %c = tfm.scale %m {factor = 2.0} : !x
    tfm.return %q, %g, %c, %x0 : !x, !x, !x, !x
  }
}

// -----

// Attention: an item is a tile of 32 rows of one head, so the grid is the rows
// times heads over 32. The gradient runs q by query heads, k and v by key heads,
// after the row sums of do * o. In the joined form the second kernel goes on in
// the first one's destination. What attention computes grows with the square of
// the tokens, so calls say how much it is at capacity: two operations a product
// and key that a row may see, half of 128 on average or the 32 of the window.
//
// CHECK-LABEL: tfm.architecture @attention {
// CHECK-LABEL: tfm.func @apart(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]: {{.*}}%[[ARG2:[a-z0-9]+]]: {{.*}}%[[ARG3:[a-z0-9]+]]: {{.*}}%[[ARG4:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[EMPTY2:.*]] = kern.empty : tensor<128x4xf32{{.*}}
// CHECK-NEXT: %[[ATTENTION:.*]]:2 = kern.call @attention_4_2_16_f32(%[[ARG0]], %[[ARG1]], %[[ARG2]], %[[ARG3]])
// CHECK-SAME: into(%[[EMPTY]], %[[EMPTY2]]) grid = <scalar = "tokens", mul = 4, div = 32, cap = 16>
// CHECK-SAME: {extents = [], flops = 0x4140000000000000 : f64, scalars = []}
// CHECK-NEXT: %[[EMPTY3:.*]] = kern.empty : tensor<128x4xf32{{.*}}
// CHECK-NEXT: %[[ATTENTION_DELTA:.*]] = kern.call @attention_delta_4x16_f32(%[[ARG4]], %[[ATTENTION]]#0)
// CHECK-SAME: into(%[[EMPTY3]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []}
// CHECK-NEXT: %[[EMPTY4:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[EMPTY5:.*]] = kern.empty : tensor<128x32xf32{{.*}}
// CHECK-NEXT: %[[EMPTY6:.*]] = kern.empty : tensor<128x32xf32{{.*}}
// CHECK-NEXT: %[[ATTENTION_GRAD_Q:.*]] = kern.call @attention_grad_q_4_2_16_f32(%[[ARG0]], %[[ARG1]], %[[ARG2]], %[[ARG4]], %[[ATTENTION]]#1, %[[ATTENTION_DELTA]], %[[ARG3]])
// CHECK-SAME: into(%[[EMPTY4]]) grid = <scalar = "tokens", mul = 4, div = 32, cap = 16>
// CHECK-SAME: {extents = [], flops = 0x4148000000000000 : f64, scalars = []}
// CHECK-NEXT: %[[ATTENTION_GRAD_KV:.*]]:2 = kern.call @attention_grad_kv_4_2_16_f32(%[[ARG0]], %[[ARG1]], %[[ARG2]], %[[ARG4]], %[[ATTENTION]]#1, %[[ATTENTION_DELTA]], %[[ARG3]])
// CHECK-SAME: into(%[[EMPTY5]], %[[EMPTY6]]) grid = <scalar = "tokens", mul = 2, div = 32, cap = 8>
// CHECK-SAME: {extents = [#kern.extent<scalar = "tokens", cap = 128>], flops = 0x4150000000000000 : f64, scalars = []}
// CHECK-NEXT: tfm.return %[[ATTENTION_GRAD_Q]], %[[ATTENTION_GRAD_KV]]#0, %[[ATTENTION_GRAD_KV]]#1 : tensor<128x64xf32{{.*}}, tensor<128x32xf32{{.*}}, tensor<128x32xf32{{.*}}
// CHECK-LABEL: tfm.func @joined(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]: {{.*}}%[[ARG2:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[EMPTY2:.*]] = kern.empty : tensor<128x4xf32{{.*}}
// CHECK-NEXT: %[[ATTENTION_PACKED:.*]]:2 = kern.call @attention_packed_4_2_16_f32_window32(%[[ARG0]], %[[ARG1]])
// CHECK-SAME: into(%[[EMPTY]], %[[EMPTY2]]) grid = <scalar = "tokens", mul = 4, div = 32, cap = 16>
// CHECK-SAME: {extents = [], flops = 0x4130000000000000 : f64, scalars = []}
// CHECK-NEXT: %[[EMPTY3:.*]] = kern.empty : tensor<128x4xf32{{.*}}
// CHECK-NEXT: %[[ATTENTION_DELTA:.*]] = kern.call @attention_delta_4x16_f32_0(%[[ARG2]], %[[ATTENTION_PACKED]]#0)
// CHECK-SAME: into(%[[EMPTY3]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []}
// CHECK-NEXT: %[[EMPTY4:.*]] = kern.empty : tensor<128x128xf32{{.*}}
// CHECK-NEXT: %[[ATTENTION_GRAD_Q_PACKED:.*]] = kern.call @attention_grad_q_packed_4_2_16_f32_window32(%[[ARG0]], %[[ARG2]], %[[ATTENTION_PACKED]]#1, %[[ATTENTION_DELTA]], %[[ARG1]])
// CHECK-SAME: into(%[[EMPTY4]]) grid = <scalar = "tokens", mul = 4, div = 32, cap = 16>
// CHECK-SAME: {extents = [], flops = 0x4138000000000000 : f64, scalars = []}
// CHECK-NEXT: %[[ATTENTION_GRAD_KV_PACKED:.*]] = kern.call @attention_grad_kv_packed_4_2_16_f32_window32(%[[ARG0]], %[[ARG2]], %[[ATTENTION_PACKED]]#1, %[[ATTENTION_DELTA]], %[[ARG1]])
// CHECK-SAME: into(%[[ATTENTION_GRAD_Q_PACKED]]) grid = <scalar = "tokens", mul = 2, div = 32, cap = 8>
// CHECK-SAME: {extents = [#kern.extent<scalar = "tokens", cap = 128>], flops = 0x4140000000000000 : f64, scalars = []}
// CHECK-NEXT: tfm.return %[[ATTENTION_GRAD_KV_PACKED]] : tensor<128x128xf32{{.*}}

!ids = tensor<128xi32, #tfm.dims<"T">>
!q = tensor<128x64xf32, #tfm.dims<"T", "">>
!kv = tensor<128x32xf32, #tfm.dims<"T", "">>
!qkv = tensor<128x128xf32, #tfm.dims<"T", "">>
!h = tensor<128x4xf32, #tfm.dims<"T", "">>
tfm.architecture @attention {
  tfm.func @apart(%q: !q, %k: !kv, %v: !kv, %s: !ids, %do: !q) -> (!q, !kv, !kv) {
    %o, %lse = tfm.attention(%q, %k, %v) %s {heads = 4 : i64, kv_heads = 2 : i64} : (!q, !kv, !kv), !ids
    %dq, %dk, %dv = tfm.attention_grad(%q, %k, %v) %do, %o, %lse, %s
      {heads = 4 : i64, kv_heads = 2 : i64} : (!q, !kv, !kv), !q, !q, !h, !ids
    tfm.return %dq, %dk, %dv : !q, !kv, !kv
  }
  tfm.func @joined(%qkv: !qkv, %s: !ids, %do: !q) -> !qkv {
    %o, %lse = tfm.attention(%qkv) %s {heads = 4 : i64, kv_heads = 2 : i64, window = 32 : i64} : (!qkv), !ids
    %d = tfm.attention_grad(%qkv) %do, %o, %lse, %s
      {heads = 4 : i64, kv_heads = 2 : i64, window = 32 : i64} : (!qkv), !q, !q, !h, !ids
    tfm.return %d : !qkv
  }
}

// -----

// Joined layers whose second part has no adapter: its columns get the product
// alone. u holds the adapters' inner values side by side, 4 columns each; the
// second adapter's factor begins at row 64 of b. In the gradient, results without
// use are not computed, and what tfm.accumulate takes is added in place.
//
// CHECK-LABEL: tfm.architecture @lora {
// CHECK-LABEL: tfm.func @forward(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]: {{.*}}%[[ARG2:[a-z0-9]+]]: {{.*}}%[[ARG3:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<128x8xf32{{.*}}
// CHECK-NEXT: %[[GEMM:.*]] = kern.gemm %[[ARG0]], %[[ARG2]] into %[[EMPTY]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 32, cap = 32>, lda = 32 : i64, ldb = 32 : i64, ldc = 8 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 8, cap = 8>, trans_b}
// CHECK-NEXT: %[[EMPTY2:.*]] = kern.empty : tensor<128x144xf32{{.*}}
// CHECK-NEXT: %[[GEMM2:.*]] = kern.gemm %[[ARG0]], %[[ARG1]] into %[[EMPTY2]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 32, cap = 32>, lda = 32 : i64, ldb = 32 : i64, ldc = 144 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 144, cap = 144>, trans_b}
// CHECK-NEXT: %[[GEMM3:.*]] = kern.gemm %[[GEMM]], %[[ARG3]] into %[[GEMM2]]
// CHECK-SAME: {alpha = 2.000000e+00 : f64, beta = 1.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 4, cap = 4>, lda = 8 : i64, ldb = 4 : i64, ldc = 144 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 64, cap = 64>, trans_b}
// CHECK-NEXT: %[[GEMM4:.*]] = kern.gemm %[[GEMM]], %[[ARG3]] into %[[GEMM3]] {a_offset = 4 : i64, alpha = 2.000000e+00 : f64, b_offset = 256 : i64, beta = 1.000000e+00 : f64, c_offset = 128 : i64,
// CHECK-SAME: k = #kern.extent<add = 4, cap = 4>, lda = 8 : i64, ldb = 4 : i64, ldc = 144 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 16, cap = 16>, trans_b}
// CHECK-NEXT: tfm.return %[[GEMM4]], %[[GEMM]] : tensor<128x144xf32{{.*}}, tensor<128x8xf32{{.*}}
// CHECK-LABEL: tfm.func @backward(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]: {{.*}}%[[ARG2:[a-z0-9]+]]: {{.*}}%[[ARG3:[a-z0-9]+]]: {{.*}}%[[ARG4:[a-z0-9]+]]: {{.*}}%[[ARG5:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<128x8xf32{{.*}}
// CHECK-NEXT: %[[GEMM:.*]] = kern.gemm %[[ARG0]], %[[ARG5]] into %[[EMPTY]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 64, cap = 64>, lda = 144 : i64, ldb = 4 : i64, ldc = 8 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 4, cap = 4>}
// CHECK-NEXT: %[[GEMM2:.*]] = kern.gemm %[[ARG0]], %[[ARG5]] into %[[GEMM]] {a_offset = 128 : i64, alpha = 1.000000e+00 : f64, b_offset = 256 : i64, beta = 0.000000e+00 : f64, c_offset = 4 : i64,
// CHECK-SAME: k = #kern.extent<add = 16, cap = 16>, lda = 144 : i64, ldb = 4 : i64, ldc = 8 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 4, cap = 4>}
// CHECK-NEXT: %[[B:.*]] = fsdp.gradient [@b] : tensor<80x4xf32>
// CHECK-NEXT: %[[GEMM3:.*]] = kern.gemm %[[ARG0]], %[[ARG2]] into %[[B]]
// CHECK-SAME: {alpha = 2.000000e+00 : f64, beta = 1.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<scalar = "tokens", cap = 128>, lda = 144 : i64, ldb = 8 : i64, ldc = 4 : i64,
// CHECK-SAME: m = #kern.extent<add = 64, cap = 64>, n = #kern.extent<add = 4, cap = 4>, trans_a}
// CHECK-NEXT: %[[GEMM4:.*]] = kern.gemm %[[ARG0]], %[[ARG2]] into %[[GEMM3]] {a_offset = 128 : i64, alpha = 2.000000e+00 : f64, b_offset = 4 : i64, beta = 1.000000e+00 : f64, c_offset = 256 : i64,
// CHECK-SAME: k = #kern.extent<scalar = "tokens", cap = 128>, lda = 144 : i64, ldb = 8 : i64, ldc = 4 : i64,
// CHECK-SAME: m = #kern.extent<add = 16, cap = 16>, n = #kern.extent<add = 4, cap = 4>, trans_a}
// CHECK-NEXT: %[[A:.*]] = fsdp.gradient [@a] : tensor<8x32xf32>
// CHECK-NEXT: %[[GEMM5:.*]] = kern.gemm %[[GEMM2]], %[[ARG1]] into %[[A]]
// CHECK-SAME: {alpha = 2.000000e+00 : f64, beta = 1.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<scalar = "tokens", cap = 128>, lda = 8 : i64, ldb = 32 : i64, ldc = 32 : i64,
// CHECK-SAME: m = #kern.extent<add = 8, cap = 8>, n = #kern.extent<add = 32, cap = 32>, trans_a}
// CHECK-NEXT: %[[EMPTY2:.*]] = kern.empty : tensor<128x32xf32{{.*}}
// The adapter's product is written, the large one is added to it.
// CHECK-NEXT: %[[GEMM6:.*]] = kern.gemm %[[GEMM2]], %[[ARG4]] into %[[EMPTY2]]
// CHECK-SAME: {alpha = 2.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 8, cap = 8>, lda = 8 : i64, ldb = 32 : i64, ldc = 32 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 32, cap = 32>}
// CHECK-NEXT: %[[GEMM7:.*]] = kern.gemm %[[ARG0]], %[[ARG3]] into %[[GEMM6]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 1.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 144, cap = 144>, lda = 144 : i64, ldb = 32 : i64, ldc = 32 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 32, cap = 32>}
// CHECK-NEXT: tfm.return %[[GEMM7]] : tensor<128x32xf32{{.*}}
// CHECK-LABEL: tfm.func @only_db(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]: {{.*}}%[[ARG2:[a-z0-9]+]]: {{.*}}%[[ARG3:[a-z0-9]+]]: {{.*}}%[[ARG4:[a-z0-9]+]]: {{.*}}%[[ARG5:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<80x4xf32>
// CHECK-NEXT: %[[GEMM:.*]] = kern.gemm %[[ARG0]], %[[ARG2]] into %[[EMPTY]]
// CHECK-SAME: {alpha = 2.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<scalar = "tokens", cap = 128>, lda = 144 : i64, ldb = 8 : i64, ldc = 4 : i64,
// CHECK-SAME: m = #kern.extent<add = 64, cap = 64>, n = #kern.extent<add = 4, cap = 4>, trans_a}
// CHECK-NEXT: %[[GEMM2:.*]] = kern.gemm %[[ARG0]], %[[ARG2]] into %[[GEMM]] {a_offset = 128 : i64, alpha = 2.000000e+00 : f64, b_offset = 4 : i64, beta = 0.000000e+00 : f64, c_offset = 256 : i64,
// CHECK-SAME: k = #kern.extent<scalar = "tokens", cap = 128>, lda = 144 : i64, ldb = 8 : i64, ldc = 4 : i64,
// CHECK-SAME: m = #kern.extent<add = 16, cap = 16>, n = #kern.extent<add = 4, cap = 4>, trans_a}
// CHECK-NEXT: tfm.return %[[GEMM2]] : tensor<80x4xf32>

!x = tensor<128x32xf32, #tfm.dims<"T", "">>
!y = tensor<128x144xf32, #tfm.dims<"T", "">>
!u = tensor<128x8xf32, #tfm.dims<"T", "">>
tfm.architecture @lora {
  tfm.param @w per_layer : tensor<144x32xf32> {hf = "w.{layer}"}
  tfm.param @a per_layer : tensor<8x32xf32> {hf = "a.{layer}", init = "kaiming_uniform", trainable}
  tfm.param @b per_layer : tensor<80x4xf32> {hf = "b.{layer}", init = "zeros", trainable}
  tfm.func @forward(%x: !x, %w: tensor<144x32xf32>, %a: tensor<8x32xf32>, %b: tensor<80x4xf32>) -> (!y, !u) {
    %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 2.0, parts = array<i64: 64, 64, 16>,
      adapted = array<i1: true, false, true>} : !x, tensor<144x32xf32>, tensor<8x32xf32>, tensor<80x4xf32>
    tfm.return %y, %u : !y, !u
  }
  tfm.func @backward(%dy: !y, %x: !x, %u: !u, %w: tensor<144x32xf32>, %a: tensor<8x32xf32>, %b: tensor<80x4xf32>) -> !x {
    %dx, %da, %db = tfm.lora_linear_grad %dy, %x, %u, %w, %a, %b {scale = 2.0, parts = array<i64: 64, 64, 16>,
      adapted = array<i1: true, false, true>} : !y, !x, !u, tensor<144x32xf32>, tensor<8x32xf32>, tensor<80x4xf32>
    tfm.accumulate [@b], %db : tensor<80x4xf32>
    tfm.accumulate [@a], %da : tensor<8x32xf32>
    tfm.return %dx : !x
  }
  tfm.func @only_db(%dy: !y, %x: !x, %u: !u, %w: tensor<144x32xf32>, %a: tensor<8x32xf32>, %b: tensor<80x4xf32>) -> tensor<80x4xf32> {
    %dx, %da, %db = tfm.lora_linear_grad %dy, %x, %u, %w, %a, %b {scale = 2.0, parts = array<i64: 64, 64, 16>,
      adapted = array<i1: true, false, true>} : !y, !x, !u, tensor<144x32xf32>, tensor<8x32xf32>, tensor<80x4xf32>
    tfm.return %db : tensor<80x4xf32>
  }
}

// -----

// Products of whole matrices. m is what is in use; a transposed operand's rows
// are what is summed over. The gradient of a weight is added to where gradients
// are summed when that is its only use (beta = 1), else made and added by a
// kernel. Sums over rows start from zeros or go on from the gradient.
//
// CHECK-LABEL: tfm.architecture @sums {
// CHECK-LABEL: tfm.func @linear(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<128x16xf32{{.*}}
// CHECK-NEXT: %[[GEMM:.*]] = kern.gemm %[[ARG0]], %[[ARG1]] into %[[EMPTY]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 32, cap = 32>, lda = 32 : i64, ldb = 32 : i64, ldc = 16 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 16, cap = 16>, trans_b}
// CHECK-NEXT: tfm.return %[[GEMM]] : tensor<128x16xf32{{.*}}
// CHECK-LABEL: tfm.func @products(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]: {{.*}}%[[ARG2:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<128x32xf32{{.*}}
// CHECK-NEXT: %[[GEMM:.*]] = kern.gemm %[[ARG0]], %[[ARG2]] into %[[EMPTY]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 16, cap = 16>, lda = 16 : i64, ldb = 32 : i64, ldc = 32 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 32, cap = 32>}
// CHECK-NEXT: %[[W:.*]] = fsdp.gradient [@w] : tensor<16x32xf32>
// CHECK-NEXT: %[[GEMM2:.*]] = kern.gemm %[[ARG0]], %[[ARG1]] into %[[W]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 1.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<scalar = "tokens", cap = 128>, lda = 16 : i64, ldb = 32 : i64, ldc = 32 : i64,
// CHECK-SAME: m = #kern.extent<add = 16, cap = 16>, n = #kern.extent<add = 32, cap = 32>, trans_a}
// CHECK-NEXT: tfm.return %[[GEMM]] : tensor<128x32xf32{{.*}}
// CHECK-LABEL: tfm.func @used_twice(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<16x32xf32>
// CHECK-NEXT: %[[GEMM:.*]] = kern.gemm %[[ARG0]], %[[ARG1]] into %[[EMPTY]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<scalar = "tokens", cap = 128>, lda = 16 : i64, ldb = 32 : i64, ldc = 32 : i64,
// CHECK-SAME: m = #kern.extent<add = 16, cap = 16>, n = #kern.extent<add = 32, cap = 32>, trans_a}
// CHECK-NEXT: %[[W:.*]] = fsdp.gradient [@w] : tensor<16x32xf32>
// CHECK-NEXT: %[[ACCUMULATE:.*]] = kern.call @accumulate_512_f32(%[[GEMM]]) into(%[[W]]) grid = <add = 1, cap = 1>
// CHECK-SAME: {extents = [], scalars = []}
// CHECK-NEXT: tfm.return %[[GEMM]] : tensor<16x32xf32>
// CHECK-LABEL: tfm.func @norms(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]: {{.*}}%[[ARG2:[a-z0-9]+]]: {{.*}}%[[ARG3:[a-z0-9]+]]:
// CHECK-NEXT: %[[N:.*]] = fsdp.gradient [@n] : tensor<32xf32>
// CHECK-NEXT: %[[RMS_NORM_WEIGHT_GRAD:.*]] = kern.call @rms_norm_weight_grad_32_f32(%[[ARG0]], %[[ARG1]], %[[ARG2]])
// CHECK-SAME: into(%[[N]]) grid = <add = 1, cap = 1>
// CHECK-SAME: {extents = [#kern.extent<scalar = "tokens", cap = 128>], scalars = []}
// CHECK-NEXT: %[[E:.*]] = fsdp.gradient [@e] : tensor<384x32xf32>
// CHECK-NEXT: %[[EMBEDDING_GRAD:.*]] = kern.call @embedding_grad_384x32_f32(%[[ARG0]], %[[ARG3]]) into(%[[E]])
// CHECK-SAME: grid = <add = 1, cap = 1> {extents = [#kern.extent<scalar = "tokens", cap = 128>], scalars = []}
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<32xf32>
// CHECK-NEXT: %[[FILL:.*]] = kern.fill into %[[EMPTY]] : tensor<32xf32>
// CHECK-NEXT: %[[RMS_NORM_WEIGHT_GRAD2:.*]] = kern.call @rms_norm_weight_grad_32_f32_0(%[[ARG1]], %[[ARG1]], %[[ARG2]])
// CHECK-SAME: into(%[[FILL]]) grid = <add = 1, cap = 1>
// CHECK-SAME: {extents = [#kern.extent<scalar = "tokens", cap = 128>], scalars = []}
// CHECK-NEXT: tfm.return %[[RMS_NORM_WEIGHT_GRAD2]] : tensor<32xf32>

!ids = tensor<128xi32, #tfm.dims<"T">>
!x = tensor<128x32xf32, #tfm.dims<"T", "">>
!y = tensor<128x16xf32, #tfm.dims<"T", "">>
!t = tensor<128xf32, #tfm.dims<"T">>
tfm.architecture @sums {
  tfm.param @w : tensor<16x32xf32> {hf = "w", trainable}
  tfm.param @n : tensor<32xf32> {hf = "n", trainable}
  tfm.param @e : tensor<384x32xf32> {hf = "e", trainable}
  tfm.func @linear(%x: !x, %w: tensor<16x32xf32>) -> !y {
    %y = tfm.linear %x, %w : !x, tensor<16x32xf32>
    tfm.return %y : !y
  }
  tfm.func @products(%dy: !y, %x: !x, %w: tensor<16x32xf32>) -> !x {
    %dx = tfm.matmul %dy, %w : !y, tensor<16x32xf32>
    %dw = tfm.matmul %dy, %x {trans_a} : !y, !x
    tfm.accumulate [@w], %dw : tensor<16x32xf32>
    tfm.return %dx : !x
  }
  tfm.func @used_twice(%dy: !y, %x: !x) -> tensor<16x32xf32> {
    %dw = tfm.matmul %dy, %x {trans_a} : !y, !x
    tfm.accumulate [@w], %dw : tensor<16x32xf32>
    tfm.return %dw : tensor<16x32xf32>
  }
  tfm.func @norms(%dy: !x, %x: !x, %rstd: !t, %ids: !ids) -> tensor<32xf32> {
    %dn = tfm.rms_norm_weight_grad %dy, %x, %rstd : !x, !x, !t
    tfm.accumulate [@n], %dn : tensor<32xf32>
    %de = tfm.embedding_grad %dy, %ids : !x, !ids -> tensor<384x32xf32>
    tfm.accumulate [@e], %de : tensor<384x32xf32>
    %dn2 = tfm.rms_norm_weight_grad %x, %x, %rstd : !x, !x, !t
    tfm.return %dn2 : tensor<32xf32>
  }
}

// -----

// A quantised weight is dequantised once in each function, however many products
// take it; joined ones part by part, each behind the one before (8 x 64 elements
// on). Another function dequantises again.
//
// CHECK-LABEL: tfm.architecture @quantised {
// CHECK-LABEL: tfm.layer @l(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]:
// CHECK-NEXT: %[[U:.*]] = fsdp.local @u
// CHECK-NEXT: %[[Q:.*]] = fsdp.view %[[U]] [@q] : tensor<8x64x!qt.nf4<block = 64, scale = dq<256>>>
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<8x64xf32>
// CHECK-NEXT: %[[CALL:.*]] = kern.call @dequantize_nf4_b64_256_n512_f32(%[[Q]]) into(%[[EMPTY]])
// CHECK-SAME: grid = <add = 8, cap = 8> {extents = [], out_offsets = array<i64: 0>, scalars = []}
// CHECK-NEXT: %[[EMPTY2:.*]] = kern.empty : tensor<128x8xf32{{.*}}
// CHECK-NEXT: %[[GEMM:.*]] = kern.gemm %[[ARG0]], %[[CALL]] into %[[EMPTY2]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 64, cap = 64>, lda = 64 : i64, ldb = 64 : i64, ldc = 8 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 8, cap = 8>, trans_b}
// CHECK-NEXT: %[[EMPTY3:.*]] = kern.empty : tensor<12x64xf32>
// CHECK-NEXT: %[[Q2:.*]] = fsdp.view %[[U]] [@q] : tensor<8x64x!qt.nf4<block = 64, scale = dq<256>>>
// CHECK-NEXT: %[[CALL2:.*]] = kern.call @dequantize_nf4_b64_256_n512_f32_0(%[[Q2]]) into(%[[EMPTY3]])
// CHECK-SAME: grid = <add = 8, cap = 8> {extents = [], out_offsets = array<i64: 0>, scalars = []}
// CHECK-NEXT: %[[K:.*]] = fsdp.view %[[U]] [@k] : tensor<4x64x!qt.nf4<block = 64, scale = dq<256>>>
// CHECK-NEXT: %[[CALL3:.*]] = kern.call @dequantize_nf4_b64_256_n256_f32(%[[K]]) into(%[[CALL2]])
// CHECK-SAME: grid = <add = 4, cap = 4> {extents = [], out_offsets = array<i64: 512>, scalars = []}
// CHECK-NEXT: %[[EMPTY4:.*]] = kern.empty : tensor<128x12xf32{{.*}}
// CHECK-NEXT: %[[GEMM2:.*]] = kern.gemm %[[ARG0]], %[[CALL3]] into %[[EMPTY4]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 64, cap = 64>, lda = 64 : i64, ldb = 64 : i64, ldc = 12 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 12, cap = 12>, trans_b}
// CHECK-NEXT: %[[EMPTY5:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[GEMM3:.*]] = kern.gemm %[[ARG1]], %[[CALL3]] into %[[EMPTY5]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 12, cap = 12>, lda = 12 : i64, ldb = 64 : i64, ldc = 64 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 64, cap = 64>}
// CHECK-NEXT: tfm.return %[[GEMM]], %[[GEMM2]], %[[GEMM3]] : tensor<128x8xf32{{.*}}, tensor<128x12xf32{{.*}}, tensor<128x64xf32{{.*}}
// CHECK-LABEL: tfm.layer @again(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]:
// CHECK-NEXT: %[[U:.*]] = fsdp.local @u
// CHECK-NEXT: %[[Q:.*]] = fsdp.view %[[U]] [@q] : tensor<8x64x!qt.nf4<block = 64, scale = dq<256>>>
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<8x64xf32>
// CHECK-NEXT: %[[CALL:.*]] = kern.call @dequantize_nf4_b64_256_n512_f32_1(%[[Q]]) into(%[[EMPTY]])
// CHECK-SAME: grid = <add = 8, cap = 8> {extents = [], out_offsets = array<i64: 0>, scalars = []}
// CHECK-NEXT: %[[EMPTY2:.*]] = kern.empty : tensor<128x8xf32{{.*}}
// CHECK-NEXT: %[[GEMM:.*]] = kern.gemm %[[ARG0]], %[[CALL]] into %[[EMPTY2]]
// CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64,
// CHECK-SAME: k = #kern.extent<add = 64, cap = 64>, lda = 64 : i64, ldb = 64 : i64, ldc = 8 : i64,
// CHECK-SAME: m = #kern.extent<scalar = "tokens", cap = 128>, n = #kern.extent<add = 8, cap = 8>, trans_b}
// CHECK-NEXT: tfm.return %[[GEMM]] : tensor<128x8xf32{{.*}}

!q = tensor<8x64x!qt.nf4<block = 64, scale = dq<256>>>
!k = tensor<4x64x!qt.nf4<block = 64, scale = dq<256>>>
!qk = tensor<12x64x!qt.nf4<block = 64, scale = dq<256>>>
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!y = tensor<128x12xf32, #tfm.dims<"T", "">>
!z = tensor<128x8xf32, #tfm.dims<"T", "">>
tfm.architecture @quantised {
  tfm.param @q per_layer : !q {hf = "q.{layer}"}
  tfm.param @k per_layer : !k {hf = "k.{layer}"}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @u [@q, @k] layers = [0]
  tfm.layer @l(%x: !x, %dy: !y) -> (!z, !y, !x) {
    %g = fsdp.local @u
    %q = fsdp.view %g [@q] : !q
    %qk = fsdp.view %g [@q, @k] : !qk
    %z = tfm.linear %x, %q : !x, !q
    %y = tfm.linear %x, %qk : !x, !qk
    %dx = tfm.matmul %dy, %qk : !y, !qk
    tfm.return %z, %y, %dx : !z, !y, !x
  }
  tfm.layer @again(%x: !x) -> !z {
    %g = fsdp.local @u
    %q = fsdp.view %g [@q] : !q
    %z = tfm.linear %x, %q : !x, !q
    tfm.return %z : !z
  }
}

// -----

// The rows of a chunk are what is left of the labelled ones, a chunk at most.
// The fused loss overwrites the logits. The loss is one item, which is told the
// rows; a program's output is copied to its place.
//
// CHECK-LABEL: tfm.architecture @loss {
// CHECK-LABEL: tfm.func @fused(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<512xf32{{.*}}
// CHECK-NEXT: %[[FUSED_CROSS_ENTROPY:.*]]:2 = kern.call @fused_cross_entropy_384_f32(%[[ARG1]])
// CHECK-SAME: into(%[[ARG0]], %[[EMPTY]]) grid = <scalar = "labels", index_mul = -512, cap = 512>
// CHECK-SAME: {extents = [], scalars = ["loss_weight"]}
// CHECK-NEXT: %[[PORT:.*]] = kern.port "loss" : tensor<1xf32>
// CHECK-NEXT: %[[REPORT_LOSS:.*]] = kern.call @report_loss_f32(%[[FUSED_CROSS_ENTROPY]]#1) into(%[[PORT]])
// CHECK-SAME: grid = <add = 1, cap = 1>
// CHECK-SAME: {extents = [#kern.extent<scalar = "labels", index_mul = -512, cap = 512>], scalars = ["loss_weight"]}
// CHECK-NEXT: tfm.return %[[FUSED_CROSS_ENTROPY]]#0 : tensor<512x384xf32{{.*}}
// CHECK-LABEL: tfm.func @apart(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<512xf32{{.*}}
// CHECK-NEXT: %[[EMPTY2:.*]] = kern.empty : tensor<512xf32{{.*}}
// CHECK-NEXT: %[[CROSS_ENTROPY:.*]]:2 = kern.call @cross_entropy_384_f32(%[[ARG0]], %[[ARG1]])
// CHECK-SAME: into(%[[EMPTY]], %[[EMPTY2]]) grid = <scalar = "labels", index_mul = -512, cap = 512>
// CHECK-SAME: {extents = [], scalars = []}
// CHECK-NEXT: %[[EMPTY3:.*]] = kern.empty : tensor<512xf32{{.*}}
// CHECK-NEXT: %[[SPLAT:.*]] = kern.call @splat_f32() into(%[[EMPTY3]])
// CHECK-SAME: grid = <scalar = "labels", index_mul = -512, cap = 512> {extents = [], scalars = ["loss_weight"]}
// CHECK-NEXT: %[[EMPTY4:.*]] = kern.empty : tensor<512x384xf32{{.*}}
// CHECK-NEXT: %[[CROSS_ENTROPY_GRAD:.*]] = kern.call @cross_entropy_grad_384_f32(%[[ARG0]], %[[ARG1]], %[[CROSS_ENTROPY]]#1, %[[SPLAT]])
// CHECK-SAME: into(%[[EMPTY4]]) grid = <scalar = "labels", index_mul = -512, cap = 512>
// CHECK-SAME: {extents = [], scalars = []}
// CHECK-NEXT: tfm.return %[[CROSS_ENTROPY_GRAD]] : tensor<512x384xf32{{.*}}
// CHECK-LABEL: tfm.func @emit(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]:
// CHECK-NEXT: %[[PORT:.*]] = kern.port "logits" : tensor<1x384xf32>
// CHECK-NEXT: %[[COPY:.*]] = kern.copy %[[ARG0]] into %[[PORT]] : tensor<1x384xf32> into tensor<1x384xf32>
// CHECK-NEXT: tfm.return

!i = tensor<512xi32, #tfm.dims<"C">>
!r = tensor<512xf32, #tfm.dims<"C">>
!l = tensor<512x384xf32, #tfm.dims<"C", "">>
tfm.architecture @loss {
  tfm.func @fused(%l: !l, %t: !i) -> !l {
    %loss, %dl = tfm.fused_cross_entropy %l, %t {weight = "loss_weight"} : !l, !i
    tfm.report_loss %loss {weight = "loss_weight"} : !r
    tfm.return %dl : !l
  }
  tfm.func @apart(%l: !l, %t: !i) -> !l {
    %loss, %lse = tfm.cross_entropy %l, %t : !l, !i
    %d = tfm.splat {scalar = "loss_weight"} : !r
    %dl = tfm.cross_entropy_grad %l, %t, %lse, %d : !l, !i, !r, !r
    tfm.return %dl : !l
  }
  tfm.func @emit(%l: tensor<1x384xf32>) {
    tfm.emit "logits", %l : tensor<1x384xf32>
    tfm.return
  }
}

// -----

// Gathers take labelled rows, scatters all tokens. The index is for the gradient
// alone.
//
// CHECK-LABEL: tfm.architecture @gather {
// CHECK-LABEL: tfm.func @f(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]: {{.*}}%[[ARG1:[a-z0-9]+]]: {{.*}}%[[ARG2:[a-z0-9]+]]:
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<128x64xf32{{.*}}
// CHECK-NEXT: %[[GATHER_ROWS:.*]] = kern.call @gather_rows_64_f32(%[[ARG0]], %[[ARG1]]) into(%[[EMPTY]])
// CHECK-SAME: grid = <scalar = "labels", cap = 128> {extents = [], scalars = []}
// CHECK-NEXT: %[[EMPTY2:.*]] = kern.empty : tensor<256x64xf32{{.*}}
// CHECK-NEXT: %[[SCATTER_ROWS:.*]] = kern.call @scatter_rows_64_f32(%[[GATHER_ROWS]], %[[ARG2]]) into(%[[EMPTY2]])
// CHECK-SAME: grid = <scalar = "tokens", cap = 256> {extents = [], scalars = []}
// CHECK-NEXT: tfm.return %[[SCATTER_ROWS]] : tensor<256x64xf32{{.*}}

!ids = tensor<256xi32, #tfm.dims<"T">>
!rows = tensor<128xi32, #tfm.dims<"R">>
!x = tensor<256x64xf32, #tfm.dims<"T", "">>
!rx = tensor<128x64xf32, #tfm.dims<"R", "">>
tfm.architecture @gather {
  tfm.func @f(%x: !x, %rows: !rows, %index: !ids) -> !x {
    %r = tfm.gather_rows %x, %rows, %index : !x, !rows, !ids
    %y = tfm.scatter_rows %r, %index : !rx, !ids
    tfm.return %y : !x
  }
}

// -----

// The optimizer works on flat buffers, all layers of a unit together: 2 x 8192
// bytes are 4096 numbers, 4 items; 256 bytes are one of 64. The norm is summed in
// parts, a unit's added up in the order in which they lie and onto those of the unit
// before. SGD keeps no state.
//
// CHECK-LABEL: tfm.architecture @optimizer {
// CHECK-LABEL: tfm.func @optimizer_step(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.flat @ua "gradient" : tensor<4096xf32>
// CHECK-NEXT:   %[[V1:.+]] = kern.empty : tensor<4xf64>
// CHECK-NEXT:   %[[V2:.+]] = kern.call @sum_squares_4096_t1024_f32(%[[V0]]) into(%[[V1]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} : (tensor<4096xf32>) into(tensor<4xf64>)
// CHECK-NEXT:   %[[V3:.+]] = kern.empty : tensor<1xf64>
// CHECK-NEXT:   %[[V4:.+]] = kern.call @add_partials_1x1x4(%[[V2]]) into(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<4xf64>) into(tensor<1xf64>)
// CHECK-NEXT:   %[[V5:.+]] = fsdp.flat @ub "gradient" : tensor<64xf32>
// CHECK-NEXT:   %[[V6:.+]] = kern.empty : tensor<1xf64>
// CHECK-NEXT:   %[[V7:.+]] = kern.call @sum_squares_64_t64_f32(%[[V5]]) into(%[[V6]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<64xf32>) into(tensor<1xf64>)
// CHECK-NEXT:   %[[V8:.+]] = kern.call @add_partials_1x1x1(%[[V7]]) into(%[[V4]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<1xf64>) into(tensor<1xf64>)
// CHECK-NEXT:   %[[V9:.+]] = kern.port "grad_norm" : tensor<1xf32>
// CHECK-NEXT:   %[[V10:.+]] = kern.call @norm_f32(%[[V8]]) into(%[[V9]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<1xf64>) into(tensor<1xf32>)
// CHECK-NEXT:   %[[V11:.+]] = fsdp.flat @ua "data" : tensor<4096xf32>
// CHECK-NEXT:   %[[V12:.+]] = fsdp.flat @ua "gradient" : tensor<4096xf32>
// CHECK-NEXT:   %[[V13:.+]] = fsdp.flat @ua "state0" : tensor<4096xf32>
// CHECK-NEXT:   %[[V14:.+]] = fsdp.flat @ua "state1" : tensor<4096xf32>
// CHECK-NEXT:   %[[V15:.+]]:4 = kern.call @adamw_f32(%[[V10]]) into(%[[V11]], %[[V12]], %[[V13]], %[[V14]]) grid = <add = 4, cap = 4> {extents = [], scalars = ["max_grad_norm", "lr", "bias_correction1", "bias_correction2"]} : (tensor<1xf32>) into(tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>)
// CHECK-NEXT:   %[[V16:.+]] = fsdp.flat @ub "data" : tensor<64xf32>
// CHECK-NEXT:   %[[V17:.+]] = fsdp.flat @ub "gradient" : tensor<64xf32>
// CHECK-NEXT:   %[[V18:.+]]:2 = kern.call @sgd_f32(%[[V10]]) into(%[[V16]], %[[V17]]) grid = <add = 1, cap = 1> {extents = [], scalars = ["max_grad_norm", "lr"]} : (tensor<1xf32>) into(tensor<64xf32>, tensor<64xf32>)
// CHECK-NEXT:   tfm.return
tfm.architecture @optimizer {
  tfm.param @a per_layer : tensor<32x64xf32> {hf = "a.{layer}", init = "zeros", trainable}
  tfm.param @b : tensor<64xf32> {hf = "b", init = "zeros", trainable}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @ua [@a] layers = [0, 1] {trainable, bytes = 8192 : i64}
  fsdp.unit @ub [@b] {trainable, bytes = 256 : i64}
  tfm.func @optimizer_step() {
    %n = tfm.grad_norm [@ua, @ub] : tensor<1xf32>
    tfm.optimizer_update [@ua], %n rule = "adamw" options =
      {beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-5, weight_decay = 0.1} : tensor<1xf32>
    tfm.optimizer_update [@ub], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.return
  }
}

// -----

// On two ranks each has half of every buffer, and the sums of squares are added over
// the ranks that share a unit.
//
// CHECK-LABEL: tfm.architecture @ranges {
// CHECK-LABEL: tfm.func @optimizer_step(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.flat @ua "gradient" : tensor<2048xf32>
// CHECK-NEXT:   %[[V1:.+]] = kern.empty : tensor<2xf64>
// CHECK-NEXT:   %[[V2:.+]] = kern.call @sum_squares_2048_t1024_f32(%[[V0]]) into(%[[V1]]) grid = <add = 2, cap = 2> {extents = [], scalars = []} : (tensor<2048xf32>) into(tensor<2xf64>)
// CHECK-NEXT:   %[[V3:.+]] = kern.empty : tensor<1xf64>
// CHECK-NEXT:   %[[V4:.+]] = kern.call @add_partials_1x1x2(%[[V2]]) into(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<2xf64>) into(tensor<1xf64>)
// CHECK-NEXT:   %[[V5:.+]] = fsdp.flat @ub "gradient" : tensor<64xf32>
// CHECK-NEXT:   %[[V6:.+]] = kern.empty : tensor<1xf64>
// CHECK-NEXT:   %[[V7:.+]] = kern.call @sum_squares_64_t64_f32(%[[V5]]) into(%[[V6]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<64xf32>) into(tensor<1xf64>)
// CHECK-NEXT:   %[[V8:.+]] = kern.call @add_partials_1x1x1(%[[V7]]) into(%[[V4]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<1xf64>) into(tensor<1xf64>)
// CHECK-NEXT:   %[[V9:.+]] = fsdp.all_reduce %[[V8]] : tensor<1xf64>
// CHECK-NEXT:   %[[V10:.+]] = kern.port "grad_norm" : tensor<1xf32>
// CHECK-NEXT:   %[[V11:.+]] = kern.call @norm_f32(%[[V9]]) into(%[[V10]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<1xf64>) into(tensor<1xf32>)
// CHECK-NEXT:   %[[V12:.+]] = fsdp.flat @ua "data" : tensor<2048xf32>
// CHECK-NEXT:   %[[V13:.+]] = fsdp.flat @ua "gradient" : tensor<2048xf32>
// CHECK-NEXT:   %[[V14:.+]] = fsdp.flat @ua "state0" : tensor<2048xf32>
// CHECK-NEXT:   %[[V15:.+]] = fsdp.flat @ua "state1" : tensor<2048xf32>
// CHECK-NEXT:   %[[V16:.+]]:4 = kern.call @adamw_f32(%[[V11]]) into(%[[V12]], %[[V13]], %[[V14]], %[[V15]]) grid = <add = 2, cap = 2> {extents = [], scalars = ["max_grad_norm", "lr", "bias_correction1", "bias_correction2"]} : (tensor<1xf32>) into(tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>)
// CHECK-NEXT:   %[[V17:.+]] = fsdp.flat @ub "data" : tensor<64xf32>
// CHECK-NEXT:   %[[V18:.+]] = fsdp.flat @ub "gradient" : tensor<64xf32>
// CHECK-NEXT:   %[[V19:.+]]:2 = kern.call @sgd_f32(%[[V11]]) into(%[[V17]], %[[V18]]) grid = <add = 1, cap = 1> {extents = [], scalars = ["max_grad_norm", "lr"]} : (tensor<1xf32>) into(tensor<64xf32>, tensor<64xf32>)
// CHECK-NEXT:   tfm.return
tfm.architecture @ranges {
  tfm.param @a per_layer : tensor<32x64xf32> {hf = "a.{layer}", init = "zeros", trainable}
  tfm.param @b : tensor<64xf32> {hf = "b", init = "zeros", trainable}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @ua [@a] layers = [0, 1] {trainable, bytes = 8192 : i64}
  fsdp.unit @ub [@b] {trainable, bytes = 512 : i64}
  tfm.func @optimizer_step() {
    %n = tfm.grad_norm [@ua, @ub] : tensor<1xf32>
    tfm.optimizer_update [@ua], %n rule = "adamw" options =
      {beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-5, weight_decay = 0.1} : tensor<1xf32>
    tfm.optimizer_update [@ub], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.return
  }
}

// -----

// On a deterministic mesh parts are the same for any number of ranks, 64 numbers
// each, and the parts of all ranges are added up in the order of the whole buffer:
// the first layer's of both ranges, then the second's.
//
// CHECK-LABEL: tfm.architecture @deterministic {
// CHECK-LABEL: tfm.func @optimizer_step(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.flat @ua "gradient" : tensor<2048xf32>
// CHECK-NEXT:   %[[V1:.+]] = kern.empty : tensor<32xf64>
// CHECK-NEXT:   %[[V2:.+]] = kern.call @sum_squares_2048_t64_f32(%[[V0]]) into(%[[V1]]) grid = <add = 32, cap = 32> {extents = [], scalars = []} : (tensor<2048xf32>) into(tensor<32xf64>)
// CHECK-NEXT:   %[[V3:.+]] = fsdp.all_gather %[[V2]] : tensor<32xf64> -> tensor<64xf64>
// CHECK-NEXT:   %[[V4:.+]] = kern.empty : tensor<1xf64>
// CHECK-NEXT:   %[[V5:.+]] = kern.call @add_partials_2x2x16(%[[V3]]) into(%[[V4]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<64xf64>) into(tensor<1xf64>)
// CHECK-NEXT:   %[[V6:.+]] = fsdp.flat @ub "gradient" : tensor<64xf32>
// CHECK-NEXT:   %[[V7:.+]] = kern.empty : tensor<1xf64>
// CHECK-NEXT:   %[[V8:.+]] = kern.call @sum_squares_64_t64_f32(%[[V6]]) into(%[[V7]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<64xf32>) into(tensor<1xf64>)
// CHECK-NEXT:   %[[V9:.+]] = fsdp.all_gather %[[V8]] : tensor<1xf64> -> tensor<2xf64>
// CHECK-NEXT:   %[[V10:.+]] = kern.call @add_partials_2x1x1(%[[V9]]) into(%[[V5]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<2xf64>) into(tensor<1xf64>)
// CHECK-NEXT:   %[[V11:.+]] = kern.port "grad_norm" : tensor<1xf32>
// CHECK-NEXT:   %[[V12:.+]] = kern.call @norm_f32(%[[V10]]) into(%[[V11]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<1xf64>) into(tensor<1xf32>)
// CHECK-NEXT:   %[[V13:.+]] = fsdp.flat @ua "data" : tensor<2048xf32>
// CHECK-NEXT:   %[[V14:.+]] = fsdp.flat @ua "gradient" : tensor<2048xf32>
// CHECK-NEXT:   %[[V15:.+]] = fsdp.flat @ua "state0" : tensor<2048xf32>
// CHECK-NEXT:   %[[V16:.+]] = fsdp.flat @ua "state1" : tensor<2048xf32>
// CHECK-NEXT:   %[[V17:.+]]:4 = kern.call @adamw_f32(%[[V12]]) into(%[[V13]], %[[V14]], %[[V15]], %[[V16]]) grid = <add = 2, cap = 2> {extents = [], scalars = ["max_grad_norm", "lr", "bias_correction1", "bias_correction2"]} : (tensor<1xf32>) into(tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>)
// CHECK-NEXT:   %[[V18:.+]] = fsdp.flat @ub "data" : tensor<64xf32>
// CHECK-NEXT:   %[[V19:.+]] = fsdp.flat @ub "gradient" : tensor<64xf32>
// CHECK-NEXT:   %[[V20:.+]]:2 = kern.call @sgd_f32(%[[V12]]) into(%[[V18]], %[[V19]]) grid = <add = 1, cap = 1> {extents = [], scalars = ["max_grad_norm", "lr"]} : (tensor<1xf32>) into(tensor<64xf32>, tensor<64xf32>)
// CHECK-NEXT:   tfm.return
tfm.architecture @deterministic {
  tfm.param @a per_layer : tensor<32x64xf32> {hf = "a.{layer}", init = "zeros", trainable}
  tfm.param @b : tensor<64xf32> {hf = "b", init = "zeros", trainable}
  fsdp.mesh @mesh ranks = 4 shards = 2 {deterministic}
  fsdp.unit @ua [@a] layers = [0, 1] {trainable, bytes = 8192 : i64}
  fsdp.unit @ub [@b] {trainable, bytes = 512 : i64}
  tfm.func @optimizer_step() {
    %n = tfm.grad_norm [@ua, @ub] : tensor<1xf32>
    tfm.optimizer_update [@ua], %n rule = "adamw" options =
      {beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-5, weight_decay = 0.1} : tensor<1xf32>
    tfm.optimizer_update [@ub], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.return
  }
}

// -----

// Rotary frequencies are constants of the kernel: theta^(-2i/E); divided by a
// factor; llama3: with wavelengths 6.3 and 63 kept (below 1000 / 4), 628 blended,
// 6283 (above 1000) divided; divided one by one.

!ids = tensor<128xi32, #tfm.dims<"T">>
!r = tensor<128x8xf32, #tfm.dims<"T", "">>
tfm.architecture @rope_tables {
  // CHECK-LABEL: tfm.architecture @rope_tables
  // CHECK: kern.func @rope_table_8_f32_3(%{{.*}}: memref<?xi32>, %{{.*}}: memref<?x8xf32>) grid(%{{.*}}) {
  // CHECK-NEXT: dense<[1.000000e+00, 1.000000e-01, 0.00999999977, 1.000000e-03]>
  // CHECK: kern.func @rope_table_8_f32_2
  // CHECK-NEXT: dense<[1.000000e+00, 5.000000e-02, 2.500000e-03, 1.250000e-04]>
  // CHECK: kern.func @rope_table_8_f32_1
  // CHECK-NEXT: dense<[1.000000e+00, 1.000000e-01, 0.00297535257, 1.250000e-04]>
  // CHECK: kern.func @rope_table_8_f32_0
  // CHECK-NEXT: dense<[2.500000e-01, 2.500000e-02, 2.500000e-03, 2.500000e-04]>
  // CHECK: kern.func @rope_table_8_f32(
  // CHECK-NEXT: dense<[1.000000e+00, 1.000000e-01, 0.00999999977, 1.000000e-03]>
  // CHECK: tfm.func @plain
  // CHECK: kern.call @rope_table_8_f32(%{{.*}}) into(%{{.*}}) grid = <scalar = "tokens", cap = 128>
  tfm.func @plain(%p: !ids) -> !r {
    %t = tfm.rope_table %p {theta = 1.0e4} : !ids -> !r
    tfm.return %t : !r
  }
  // CHECK: tfm.func @linear
  // CHECK: kern.call @rope_table_8_f32_0(
  tfm.func @linear(%p: !ids) -> !r {
    %t = tfm.rope_table %p {theta = 10000 : i64, scaling = {type = "linear", factor = 4.0}} : !ids -> !r
    tfm.return %t : !r
  }
  // CHECK: tfm.func @llama3
  // CHECK: kern.call @rope_table_8_f32_1(
  tfm.func @llama3(%p: !ids) -> !r {
    %t = tfm.rope_table %p {theta = 1.0e4, scaling = {rope_type = "llama3", factor = 8.0, low_freq_factor = 1.0,
      high_freq_factor = 4.0, original_max_position_embeddings = 1000 : i64}} : !ids -> !r
    tfm.return %t : !r
  }
  // CHECK: tfm.func @factors
  // CHECK: kern.call @rope_table_8_f32_2(
  tfm.func @factors(%p: !ids) -> !r {
    %t = tfm.rope_table %p {theta = 1.0e4, factors = [1.0, 2.0, 4 : i64, 8.0]} : !ids -> !r
    tfm.return %t : !r
  }
  // CHECK: tfm.func @default
  // CHECK: kern.call @rope_table_8_f32_3(
  tfm.func @default(%p: !ids) -> !r {
    %t = tfm.rope_table %p {theta = 1.0e4, scaling = {rope_type = "default"}} : !ids -> !r
    tfm.return %t : !r
  }
}

// -----

// One thread adds the partial sums of the norm up: of 5001 tiles, which fill 5 tiles
// but for 119, only those five.
//
// CHECK-LABEL: tfm.architecture @large {
// CHECK: %[[ALL:[0-9]+]] = kern.empty : tensor<5120xf64>
// CHECK: %[[ZEROS:[0-9]+]] = kern.fill into %[[ALL]]
// CHECK: %[[SQUARES:[0-9]+]] = kern.call @sum_squares_5121024_t1024_f32(%{{[0-9]+}}) into(%[[ZEROS]]) grid = <add = 5001, cap = 5001>
// CHECK: %[[SUMS:[0-9]+]] = kern.call @sums_5120_t1024(%[[SQUARES]]) into(%{{[0-9]+}}) grid = <add = 5, cap = 5>
// CHECK: kern.call @add_partials_1x1x5(%[[SUMS]])
tfm.architecture @large {
  tfm.param @a : tensor<5001x1024xf32> {hf = "a", init = "zeros", trainable}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @u [@a] {trainable, bytes = 20484096 : i64}
  tfm.func @optimizer_step() {
    %n = tfm.grad_norm [@u] : tensor<1xf32>
    tfm.return
  }
}

// -----

// Dropout is told its place, 64 to a layer, and the micro-batch's key; the gradient
// drops the input again for %da, and what flows back through the adapter.
//
// CHECK-LABEL: tfm.architecture @dropout {
// CHECK-LABEL: tfm.layer @forward(
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK: %[[XD:[0-9]+]] = kern.call @dropout_64_f32(%[[X]]) into(%{{[0-9]+}}) grid = <scalar = "tokens", cap = 128> {extents = [#kern.extent<scalar = "layer", mul = 64, add = 3, cap = {{[0-9]+}}>], scalars = ["dropout_key"]}
// CHECK: kern.gemm %[[XD]], %arg2
// CHECK: kern.gemm %[[X]], %arg1
// CHECK-LABEL: tfm.layer @backward(
// CHECK-SAME: %[[DY:[a-z0-9]+]]: {{.*}}, %[[X:arg1]]:
// CHECK: %[[XD:[0-9]+]] = kern.call @dropout_64_f32_{{[0-9]}}(%[[X]])
// CHECK: kern.gemm %{{[0-9]+}}, %[[XD]] into
// CHECK: %[[INNER:[0-9]+]] = kern.gemm %{{[0-9]+}}, %arg4
// CHECK: %[[DROPPED:[0-9]+]] = kern.call @dropout_64_f32_{{[0-9]}}(%[[INNER]])
// CHECK: kern.gemm %[[DY]], %arg3 into %[[DROPPED]] {{.*}}beta = 1.0
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!u = tensor<128x8xf32, #tfm.dims<"T", "">>
tfm.architecture @dropout {
  tfm.layer @forward(%x: !x, %w: tensor<64x64xf32>, %a: tensor<8x64xf32>, %b: tensor<64x8xf32>) -> !x {
    %y, %u = tfm.lora_linear %x, %w, %a, %b {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>, mask = #tfm.dropout<rate = 0.1 : f64, site = 3>}
      : !x, tensor<64x64xf32>, tensor<8x64xf32>, tensor<64x8xf32>
    tfm.return %y : !x
  }
  tfm.layer @backward(%dy: !x, %x: !x, %u: !u, %w: tensor<64x64xf32>, %a: tensor<8x64xf32>, %b: tensor<64x8xf32>) -> (!x, tensor<8x64xf32>) {
    %dx, %da, %db = tfm.lora_linear_grad %dy, %x, %u, %w, %a, %b {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>, mask = #tfm.dropout<rate = 0.1 : f64, site = 3>}
      : !x, !x, !u, tensor<64x64xf32>, tensor<8x64xf32>, tensor<64x8xf32>
    tfm.return %dx, %da : !x, tensor<8x64xf32>
  }
}
