// A plan for a GPU: how kernels are started, and memory for the library's
// products of each stream. Without code it takes no NVRTC.

// RUN: %opt %s --kern-prepare-emission=arch=sm_80 -o %t.mlir
// RUN: %opt %t.mlir "--exec-serialize=output=%t.plan kernels=false target=sm_80" -o /dev/null
// RUN: fsdpq-translate --plan-to-text %t.plan | FileCheck %s
// RUN: fsdpq-translate --kernel-table %t.plan | FileCheck %s --check-prefix=TABLE
// RUN: %opt %t.mlir "--exec-serialize=output=%t.again.plan kernels=false target=sm_80" -o /dev/null
// RUN: cmp %t.plan %t.again.plan

// For the CPU kernels have no launch, and the library brings its own memory.
// RUN: %opt %t.mlir "--exec-serialize=output=%t.cpu.plan kernels=false" -o /dev/null
// RUN: fsdpq-translate --plan-to-text %t.cpu.plan | FileCheck %s --check-prefix=CPU --implicit-check-not=workspace --implicit-check-not=blocks

// RUN: not %opt %t.mlir "--exec-serialize=output=%t.plan target=sm_77" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: [FSDPQ-0605] unknown target 'sm_77'; known: cpu, sm_80, {{.*}}sm_90a

// CHECK: target sm_80
// CHECK: arena activations : 1024 bytes
// CHECK-NEXT: arena workspace : 67108864 bytes
// CHECK: slice workspace#{{[0-9]+}} : workspace + 0, 33554432 bytes
// CHECK: slice workspace#{{[0-9]+}} : workspace + 33554432, 33554432 bytes
// CHECK: kernel scale : CudaCubin symbol {{[a-z_0-9]+}}, 0 bytes, hash{{ *$}}
// CHECK-NEXT: blocks of {{[0-9]+}} threads, 0 bytes of shared memory, {{[1-9]+}} work items
// CHECK-NOT: resources
// CHECK: function f

// TABLE: scale scale {{[1-9][0-9]*}} - - - 0

// CPU: kernel scale : CpuObject symbol scale, 0 bytes

exec.plan @sample {
  exec.arena @activations {bytes = 1024 : i64}
  exec.scalar @lr
  kern.func @scale(%x: memref<?x64xf32>, %s: f64) grid(%row) {
    %c0 = arith.constant 0 : index
    %f = arith.truncf %s : f64 to f32
    %t = kern.load %x[%row, %c0] : memref<?x64xf32> -> tensor<64xf32>
    %e = tensor.empty() : tensor<64xf32>
    %r = linalg.generic {
        indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
        iterator_types = ["parallel"]}
        ins(%t : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %m = arith.mulf %a, %f : f32
      linalg.yield %m : f32
    } -> tensor<64xf32>
    kern.store %r, %x[%row, %c0] : tensor<64xf32> -> memref<?x64xf32>
  }
  exec.func @f {
    %x = exec.slice "x" of @activations[0] bytes = 512
    %y = exec.slice "y" of @activations[512] bytes = 512
    exec.launch @scale reads() writes(%x) grid = #kern.extent<add = 2, cap = 2>
      {extents = [], scalars = ["lr"]} stream = 0
    exec.gemm %x, %x into %y f32 {trans_b, alpha = 1.0, beta = 0.0, m = #kern.extent<add = 2, cap = 2>,
      n = #kern.extent<add = 2, cap = 2>, k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 2} stream = 0
    exec.gemm %x, %x into %y f32 {trans_b, alpha = 1.0, beta = 0.0, m = #kern.extent<add = 2, cap = 2>,
      n = #kern.extent<add = 2, cap = 2>, k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 2} stream = 1
    exec.gemm %x, %x into %y f32 {trans_b, alpha = 1.0, beta = 0.0, m = #kern.extent<add = 2, cap = 2>,
      n = #kern.extent<add = 2, cap = 2>, k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 2} stream = 0
  }
}
