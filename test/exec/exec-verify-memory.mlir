// RUN: %opt %s --exec-verify-memory | FileCheck %s

// CHECK-LABEL: exec.plan @p
exec.plan @p {
  exec.arena @step {bytes = 256 : i64}
  exec.arena @base {bytes = 1024 : i64}
  exec.arena @activations {bytes = 1024 : i64}
  kern.func @k(%x: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }
  exec.func @f {
    %x = exec.slice "x" of @step[0] bytes = 256
    %a = exec.slice "a" of @activations[0] bytes = 512
    %a0 = exec.subslice %a[0] bytes = 256
    %a1 = exec.subslice %a[256] bytes = 256
    exec.copy %x to %a0 bytes = #kern.extent<add = 256, cap = 256> stream = 0
    exec.fill %a1 bytes = #kern.extent<add = 256, cap = 256> stream = 0
    // Read as a whole after it was written in parts.
    %b = exec.slice "b" of @activations[512] bytes = 512
    exec.launch @k reads(%a) writes(%b) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    exec.loop count = #kern.extent<add = 2, cap = 2> {
      // In turn, by table and by stride; `a` is not needed any more as a whole.
      %in = exec.subslice %b[0] bytes = 256 {level = 1 : i64, table = array<i64: 0, 256>}
      %out = exec.subslice %b[256] bytes = 256 {level = 1 : i64, stride = -256 : i64}
      %w = exec.slice "w" of @base[0] bytes = 512 {level = 1 : i64, stride = 512 : i64}
      exec.gemm %in, %w into %out f32 {alpha = 1.0, beta = 1.0,
        m = #kern.extent<add = 8, cap = 8>, n = #kern.extent<add = 8, cap = 8>, k = #kern.extent<add = 8, cap = 8>,
        lda = 8, ldb = 8, ldc = 8} stream = 0
    }
    // Memory that is free is used again.
    %c = exec.slice "c" of @activations[128] bytes = 256
    exec.launch @k reads(%b) writes(%c) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    exec.launch @k reads(%c) writes(%b) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
  }
  // A function of an index is checked at its last one.
  exec.func @load attributes {index_count = 2 : i64} {
    %w = exec.slice "w" of @base[0] bytes = 512 {stride = 512 : i64}
    exec.fill %w bytes = #kern.extent<add = 512, cap = 512> stream = 0
  }
}
