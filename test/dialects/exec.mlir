// RUN: %opt %s | %opt | FileCheck %s
// RUN: %opt %s --mlir-print-op-generic | %opt | FileCheck %s

// CHECK-LABEL: exec.plan @plan attributes {config = {D = 64 : i64}}
exec.plan @plan attributes {config = {D = 64 : i64}} {
  // CHECK-NEXT: exec.arena @base {bytes = 61440 : i64}
  exec.arena @base {bytes = 61440 : i64}
  // CHECK-NEXT: exec.arena @step {bytes = 2048 : i64}
  exec.arena @step {bytes = 2048 : i64}
  // CHECK-NEXT: exec.arena @activations
  exec.arena @activations
  // CHECK-NEXT: exec.scalar @tokens {max = 512 : i64}
  exec.scalar @tokens {max = 512 : i64}
  // CHECK-NEXT: exec.scalar @lr
  exec.scalar @lr
  // CHECK-NEXT: exec.port "ids" input i32 at @step[0] extent = <scalar = "tokens", cap = 512>
  exec.port "ids" input i32 at @step[0] extent = #kern.extent<scalar = "tokens", cap = 512>
  // CHECK-NEXT: exec.port "loss" f32 at @step[2048] extent = <add = 1, cap = 1>
  exec.port "loss" f32 at @step[2048] extent = #kern.extent<add = 1, cap = 1>
  // CHECK-NEXT: exec.arena @staging {bytes = 512 : i64, contents = {t = 256 : i64, u = 256 : i64}, shares = @activations}
  exec.arena @staging {bytes = 512 : i64, shares = @activations, contents = {t = 256 : i64, u = 256 : i64}}
  // CHECK-NEXT: exec.unit @norm.base in @base[256] bytes = 512
  exec.unit @norm.base in @base[256] bytes = 512
  // CHECK-NEXT: exec.unit @layers.base in @base[0] bytes = 4608
  // CHECK-SAME: {begin = @load.begin.layers.base, gradient = 1024 : i64, layers = array<i32: 0, 1>, store = @load.store.layers.base}
  exec.unit @layers.base in @base[0] bytes = 4608 {layers = array<i32: 0, 1>, gradient = 1024 : i64,
    begin = @load.begin.layers.base, store = @load.store.layers.base}
  // CHECK-NEXT: exec.param @norm : tensor<64xf32> in @norm.base
  // CHECK-SAME: {gguf = "n", gguf_rope_heads = 4 : i64, hf = "h", init = "zeros", loader = {mean = @load.mean.norm, piece = @load.norm}
  // CHECK-SAME: parts = [{elements = 64 : i64, name = "data", offset = 0 : i64, type = "f32"}], pieces = 2 : i64, trainable}
  exec.param @norm : tensor<64xf32> in @norm.base {
    hf = "h", gguf = "n", gguf_rope_heads = 4 : i64, init = "zeros", pieces = 2 : i64,
    loader = {piece = @load.norm, mean = @load.mean.norm}, trainable,
    parts = [{name = "data", type = "f32", offset = 0 : i64, elements = 64 : i64}]}

  // CHECK: kern.func @k
  kern.func @k(%x: memref<?xf32>, %y: memref<?xf32>, %n: i64, %s: f64) grid(%i) {
  }

  // CHECK-LABEL: exec.func @load.norm attributes {index_count = 30 : i64}
  exec.func @load.norm attributes {index_count = 30 : i64} {
  }

  // CHECK-LABEL: exec.func @f {
  exec.func @f {
    // CHECK-NEXT: %[[A:.*]] = exec.alloc "q" bytes = 131072
    %a = exec.alloc "q" bytes = 131072
    // CHECK-NEXT: %[[B:.*]] = exec.slice "w" of @base[256] bytes = 2048
    %b = exec.slice "w" of @base[256] bytes = 2048
    // CHECK-NEXT: exec.fill %[[A]] bytes = <add = 256, cap = 256> stream = 0
    exec.fill %a bytes = #kern.extent<add = 256, cap = 256> stream = 0
    // CHECK-NEXT: exec.loop count = <add = 3, cap = 3> {
    exec.loop count = #kern.extent<add = 3, cap = 3> {
      // CHECK-NEXT: %[[W:.*]] = exec.slice "w" of @base[256] bytes = 2048 {level = 1 : i64, stride = 20480 : i64}
      %w = exec.slice "w" of @base[256] bytes = 2048 {stride = 20480 : i64, level = 1 : i64}
      // CHECK-NEXT: %[[S:.*]] = exec.subslice %[[A]][0] bytes = 1024 {level = 1 : i64, table = array<i64: 0, 4096, 1024>}
      %s = exec.subslice %a[0] bytes = 1024 {level = 1 : i64, table = array<i64: 0, 4096, 1024>}
      // CHECK-NEXT: exec.launch @k reads(%[[W]]) writes(%[[S]]) grid = <scalar = "tokens", cap = 512>
      // CHECK-SAME: {extents = [#kern.extent<scalar = "tokens", mul = 9, div = 32, index_mul = -2, add = 1, cap = 144>], scalars = ["lr"]} stream = 0
      exec.launch @k reads(%w) writes(%s) grid = #kern.extent<scalar = "tokens", cap = 512>
        {extents = [#kern.extent<scalar = "tokens", mul = 9, div = 32, index_mul = -2, add = 1, cap = 144>],
         scalars = ["lr"]} stream = 0
    // CHECK-NEXT: }
    }
    // CHECK-NEXT: exec.gemm %[[A]], %[[B]] into %[[A]] f32
    // CHECK-SAME: {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, k = #kern.extent<add = 64, cap = 64>, lda = 64 : i64, ldb = 64 : i64, ldc = 64 : i64, m = #kern.extent<scalar = "tokens", cap = 512>, n = #kern.extent<add = 64, cap = 64>, trans_b} stream = 1
    exec.gemm %a, %b into %a f32 {trans_b, alpha = 1.0, beta = 0.0,
      m = #kern.extent<scalar = "tokens", cap = 512>, n = #kern.extent<add = 64, cap = 64>,
      k = #kern.extent<add = 64, cap = 64>, lda = 64, ldb = 64, ldc = 64} stream = 1
    // CHECK-NEXT: exec.copy %[[A]] to %[[B]] bytes = <scalar = "tokens", mul = 4, cap = 2048> stream = 0
    exec.copy %a to %b bytes = #kern.extent<scalar = "tokens", mul = 4, cap = 2048> stream = 0
    // What lies in a slice may be said to be parameters.
    // CHECK-NEXT: %[[RANGE:.*]] = exec.slice "layers.base" of @base[0] bytes = 2304 {level = 1 : i64, ordinals = array<i64: 0, 1>, stride = 2304 : i64, unit = @layers.base}
    %range = exec.slice "layers.base" of @base[0] bytes = 2304 {level = 1 : i64, stride = 2304 : i64,
      unit = @layers.base, ordinals = array<i64: 0, 1>}
    // CHECK-NEXT: %[[WHOLE:.*]] = exec.subslice %[[A]][0] bytes = 4608 {ordinals = array<i64: 1>, unit = @layers.base}
    %whole = exec.subslice %a[0] bytes = 4608 {unit = @layers.base, ordinals = array<i64: 1>}
    // CHECK-NEXT: exec.record 3 stream = 0
    exec.record 3 stream = 0
    // CHECK-NEXT: exec.wait 3 stream = 1
    exec.wait 3 stream = 1
    // CHECK-NEXT: exec.all_gather %[[RANGE]] to %[[WHOLE]] bytes = 2304 {event = 0 : i64, group = "shard"} stream = 1
    exec.all_gather %range to %whole bytes = 2304 {event = 0, group = "shard"} stream = 1
    // CHECK-NEXT: exec.wait 0 holds(%[[WHOLE]], %[[RANGE]]) stream = 0
    exec.wait 0 holds(%whole, %range) stream = 0
    // CHECK-NEXT: exec.reduce_scatter %[[WHOLE]] to %[[RANGE]] elements = 576 f32
    // CHECK-SAME: {accumulate, event = 1 : i64, group = "world", ranges = 2 : i64} stream = 2
    exec.reduce_scatter %whole to %range elements = 576 f32
      {accumulate, group = "world", ranges = 2 : i64, event = 1 : i64} stream = 2
    // CHECK-NEXT: exec.reduce_scatter %[[WHOLE]] to %[[RANGE]] elements = 2304 i8
    // CHECK-SAME: {event = 1 : i64, group = "shard", ranges = 2 : i64} stream = 2
    exec.reduce_scatter %whole to %range elements = 2304 i8
      {group = "shard", ranges = 2 : i64, event = 1 : i64} stream = 2
    // CHECK-NEXT: exec.all_reduce %[[RANGE]] elements = 576 f32 {event = 2 : i64, group = "replica"} stream = 2
    exec.all_reduce %range elements = 576 f32 {group = "replica", event = 2 : i64} stream = 2
  }
}
