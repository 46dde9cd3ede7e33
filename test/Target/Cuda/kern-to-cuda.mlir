// RUN: %opt %s --kern-prepare-emission --kern-to-cuda -o %t.mlir | FileCheck %s --strict-whitespace
// The IR is not changed by printing, and the text depends on the body alone.
// RUN: %opt %t.mlir --kern-to-cuda -o /dev/null | FileCheck %s --strict-whitespace
// RUN: %opt %t.mlir --mlir-print-debuginfo --kern-to-cuda -o /dev/null | FileCheck %s --strict-whitespace

#id = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0) -> ()>

// Read once, held while the sum is made, rounded in pairs.
// CHECK-LABEL:// ==== normalise.1
// CHECK-NEXT:// launch: threads = 256, items a block = 1, shared bytes = 0, blocks a processor = 0
// CHECK-NEXT:// normalise_1: rows, 256 threads a tile.
// CHECK-NEXT:// a0: memref<?x4096xbf16>
// CHECK:__shared__ float partial0[8];
// CHECK:DEV void compute(const u16 *__restrict__ a0, u16 *__restrict__ a1, i64 items) {
// CHECK-NEXT:  const int lane = threadIdx.x;
// CHECK-NEXT:  const i64 item = i64(blockIdx.x);
// CHECK-NEXT:  const u16 *const p0 = a0 + item * 4096;
// CHECK-NEXT:  Words<16> held0[2];
// CHECK-NEXT:  #pragma unroll
// CHECK-NEXT:  for (int k = 0; k < 2; ++k) {
// CHECK-NEXT:    const int e = (k * 256 + lane) * 8;
// CHECK-NEXT:    held0[k] = read<16, Aligned ? 16 : 2>(p0 + e);
// CHECK-NEXT:  }
// CHECK-NEXT:  float sum0 = 0.0f;
// CHECK-NEXT:  #pragma unroll
// CHECK-NEXT:  for (int k = 0; k < 2; ++k) {
// CHECK-NEXT:    #pragma unroll
// CHECK-NEXT:    for (int j = 0; j < 8; ++j) {
// CHECK-NEXT:      const u16 v0 = at<u16>(held0[k], j);
// CHECK-NEXT:      const float v1 = f32_of(v0);
// CHECK-NEXT:      const float v2 = v1 * v1;
// CHECK-NEXT:      sum0 = sum0 + v2;
// CHECK:  for (int o = 16; o > 0; o /= 2) {
// CHECK-NEXT:    const float v3 = float(__shfl_xor_sync(~0u, sum0, o));
// CHECK-NEXT:    sum0 = sum0 + v3;
// CHECK:  if (lane % 32 == 0) {
// CHECK-NEXT:    partial0[lane / 32] = sum0;
// CHECK-NEXT:  }
// CHECK-NEXT:  __syncthreads();
// CHECK-NEXT:  sum0 = partial0[0];
// CHECK:  const float [[ROOT:v[0-9]+]] = sqrtf(sum0);
// Without contract, products and sums are not joined.
// CHECK:      f0[j] = v{{[0-9]+}};
// CHECK:      w0.at[j / 2] = bf16x2_of(f0[j], f0[j + 1]);
// CHECK-NEXT:    write<Aligned ? 16 : 2>(p1 + e, w0);
// CHECK:extern "C" __global__ void __launch_bounds__(256)
// CHECK-NEXT:normalise_1(const u16 *__restrict__ a0, u16 *__restrict__ a1, i64 items) {
// CHECK:    compute<true>(a0, a1, items);
// CHECK:    compute<false>(a0, a1, items);
kern.func @normalise.1(%x: memref<?x4096xbf16>, %y: memref<?x4096xbf16>) grid(%row) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %a = kern.load %x[%row, %c0] : memref<?x4096xbf16> -> tensor<4096xbf16>
  %e0 = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#id, #scalar], iterator_types = ["reduction"]}
      ins(%a : tensor<4096xbf16>) outs(%z : tensor<f32>) {
  ^bb0(%v: bf16, %sum: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f fastmath<contract> : f32
    %n = arith.addf %sum, %m fastmath<contract,reassoc> : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  %total = tensor.extract %s[] : tensor<f32>
  %root = math.sqrt %total : f32
  %e = tensor.empty() : tensor<4096xbf16>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<4096xbf16>) outs(%e : tensor<4096xbf16>) {
  ^bb0(%v: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %q = arith.divf %f, %root : f32
    %r = arith.truncf %q : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<4096xbf16>
  kern.store %b, %y[%row, %c0] : tensor<4096xbf16> -> memref<?x4096xbf16>
}

// A sum whose order is fixed is made by one thread.
// CHECK-LABEL:// ==== ordered
// CHECK:  if (lane == 0) {
// CHECK-NEXT:    #pragma unroll 8
// CHECK-NEXT:    for (int d0 = 0; d0 < 64; ++d0) {
// CHECK-NEXT:      const double v{{[0-9]+}} = p0[d0];
// CHECK-NEXT:      const double v{{[0-9]+}} = __dadd_rn(sum0, v{{[0-9]+}});
// CHECK:  sum0 = __shfl_sync(mask, sum0, 0, {{[0-9]+}});
// CHECK-NEXT:  if (lane == 0)
// CHECK-NEXT:    *(a1) = sum0;
kern.func @ordered(%x: memref<64xf64>, %y: memref<1xf64>) grid(%i) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %a = kern.load %x[%c0] : memref<64xf64> -> tensor<64xf64>
  %e0 = tensor.empty() : tensor<f64>
  %z = linalg.fill ins(%zero : f64) outs(%e0 : tensor<f64>) -> tensor<f64>
  %s = linalg.generic {indexing_maps = [#id, #scalar], iterator_types = ["reduction"]}
      ins(%a : tensor<64xf64>) outs(%z : tensor<f64>) {
  ^bb0(%v: f64, %sum: f64):
    %n = arith.addf %sum, %v : f64
    linalg.yield %n : f64
  } -> tensor<f64>
  %total = tensor.extract %s[] : tensor<f64>
  memref.store %total, %y[%c0] : memref<1xf64>
}

// A table is copied to shared memory by all threads before any may leave. What
// one thread writes and others read stands on either side of a barrier.
// CHECK-LABEL:// ==== table
// CHECK:__device__ const float table0_entries[2] = {
// CHECK-NEXT:  0.5f, {{.*}}};
// CHECK-NEXT:__shared__ float table0[2];
// CHECK:  for (int i = threadIdx.x; i < 2; i += blockDim.x)
// CHECK-NEXT:    table0[i] = table0_entries[i];
// CHECK-NEXT:  __syncthreads();
// CHECK:  if (item >= items)
// CHECK-NEXT:    return;
// CHECK:table0[v{{[0-9]+}} & 1]
// CHECK:  if (lane == 0)
// CHECK-NEXT:    *({{.*}}) =
// CHECK:  __syncwarp(mask);
// CHECK:read<
kern.func @table(%c: memref<?xi32>, %x: memref<?x64xf32>, %y: memref<?x64xf32>) grid(%row) {
  %c0 = arith.constant 0 : index
  %code = memref.load %c[%row] : memref<?xi32>
  %v = kern.lookup %code, dense<[0.5, 0x7F800000]> : tensor<2xf32> : i32 -> f32
  memref.store %v, %x[%row, %c0] : memref<?x64xf32>
  %a = kern.load %x[%row, %c0] : memref<?x64xf32> -> tensor<64xf32>
  kern.store %a, %y[%row, %c0] : tensor<64xf32> -> memref<?x64xf32>
}

// Elements that no thread owns are read where they are used.
// CHECK-LABEL:// ==== transpose
// CHECK:      const float v0 = p0[((e + j) % 8) * 4 + (e + j) / 8];
#tr = affine_map<(d0, d1) -> (d1, d0)>
#mm = affine_map<(d0, d1) -> (d0, d1)>
kern.func @transpose(%x: memref<8x4xf32>, %y: memref<4x8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %a = kern.load %x[%c0, %c0] : memref<8x4xf32> -> tensor<8x4xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %t = linalg.transpose ins(%a : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) permutation = [1, 0]
  kern.store %t, %y[%c0, %c0] : tensor<4x8xf32> -> memref<4x8xf32>
}

// Sums in shared memory; the threads of the block share them out.
// CHECK-LABEL:// ==== sums
// CHECK:// sums: tiles in {{[0-9]+}} bytes of shared memory, a block of 128 threads an item.
// CHECK:extern __shared__ __align__(16) unsigned char shared[];
// CHECK:  float *const tile0 = reinterpret_cast<float *>(shared + 0); // 8
// CHECK:  for (int e0 = lane; e0 < 8; e0 += 128) {
// CHECK:    tile0[d0] = sums0[0];
// CHECK:  __syncthreads();
#line = affine_map<(d0, d1) -> (d0)>
kern.func @sums(%x: memref<8x4xf32>, %y: memref<8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %a = kern.load %x[%c0, %c0] : memref<8x4xf32> -> tensor<8x4xf32>
  %e = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#mm, #line], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<8x4xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%v: f32, %sum: f32):
    %n = arith.addf %sum, %v fastmath<reassoc> : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  kern.store %s, %y[%c0] : tensor<8xf32> -> memref<8xf32>
}
