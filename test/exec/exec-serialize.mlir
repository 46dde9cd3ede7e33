// A plan without code: written, checked, and printed.

// RUN: %opt %s "--exec-serialize=output=%t.plan kernels=false" | FileCheck %s
// RUN: fsdpq-translate --check %t.plan | FileCheck %s --check-prefix=SOUND
// RUN: fsdpq-translate --plan-to-text %t.plan | FileCheck %s --check-prefix=TEXT --match-full-lines

// The same IR gives the same bytes.
// RUN: %opt %s "--exec-serialize=output=%t.again.plan kernels=false" -o /dev/null
// RUN: cmp %t.plan %t.again.plan

// With code: both kernels are compiled.
// RUN: %opt %s --exec-serialize=output=%t.code.plan -o /dev/null
// RUN: fsdpq-translate --plan-to-text %t.code.plan | FileCheck %s --check-prefix=CODE

// A plan that ends early is refused.
// RUN: head -c 1000 %t.plan > %t.cut.plan
// RUN: not fsdpq-translate --check %t.cut.plan 2>&1 | FileCheck %s --check-prefix=CUT

// The IR is not changed.
// CHECK: exec.plan @sample
// CHECK: exec.subslice
// CHECK: exec.gemm

// SOUND: plan {{[0-9a-f]+}} is sound

// CODE: kernel quantize : CpuObject symbol quantize, {{[1-9][0-9]+}} bytes, hash {{[0-9a-f]+}}
// CODE-NEXT: kernel update : CpuObject symbol update, {{[1-9][0-9]+}} bytes, hash {{[0-9a-f]+}}

// CUT: error[FSDPQ-3003]: the plan's checksum does not match its content

// TEXT: plan version {{[0-9]+}} hash {{[0-9a-f]+}}
// TEXT-NEXT: compiler fsdpq
// TEXT-NEXT: target {{.+}}
// TEXT-NEXT: metadata architecture = sample
// TEXT-NEXT: mesh 4 ranks, 2 shards
// TEXT-NEXT: scalar tokens : i64 max 128
// TEXT-NEXT: scalar lr : f64
// TEXT-NEXT: stream compute
// TEXT-NEXT: stream gather
// TEXT-NEXT: stream reduce
// TEXT-NEXT: events 4
// TEXT-NEXT: arena base : 512 bytes
// TEXT-NEXT: arena trained : 512 bytes
// TEXT-NEXT: arena gradients : 512 bytes
// TEXT-NEXT: arena step : 4096 bytes
// TEXT-NEXT: arena activations : 3072 bytes
// TEXT-NEXT: content t : 2048 bytes
// TEXT-NEXT: content whole : 512 bytes
// TEXT-NEXT: slice staging#0 : activations + 0, 256 bytes
// TEXT-NEXT: slice layers.base.loading#1 : activations + 256, 512 bytes
// TEXT-NEXT: slice staging#2 : activations + 0, 256 bytes
// TEXT-NEXT: slice q.codes : activations + 256, 32 bytes
// TEXT-NEXT: slice q.absmax : activations + 320, 4 bytes
// TEXT-NEXT: slice layers.base.loading#5 : activations + 256, 512 bytes
// TEXT-NEXT: slice layers.base#6 : base + 0, 256 bytes, at i0 * 256
// TEXT-NEXT: slice t#7 : activations + 0, 2048 bytes
// TEXT-NEXT: slice layers.trained#8 : trained + 256, 256 bytes, at i1 * -256, holds layers.trained [1, 0][i1]
// TEXT-NEXT: slice whole#9 : activations + 2048, 512 bytes
// TEXT-NEXT: slice t#10 : activations + 0, 512 bytes, at [0, 1024][i1]
// TEXT-NEXT: slice a.gradient : gradients + 256, 64 bytes, at i1 * -256
// TEXT-NEXT: slice t#12 : activations + 0, 512 bytes, at [0, 1024][i1]
// TEXT-NEXT: slice whole#13 : activations + 2048, 64 bytes, holds layers.trained [1, 0][i1]
// TEXT-NEXT: slice t#14 : activations + 512, 512 bytes
// TEXT-NEXT: slice sum : gradients + 0, 512 bytes
// TEXT-NEXT: slice t#16 : activations + 0, 2048 bytes
// TEXT-NEXT: slice loss#17 : step + 512, 4 bytes
// TEXT-NEXT: slice ids : step + 0, 512 bytes
// TEXT-NEXT: slice loss#19 : step + 512, 4 bytes
// TEXT-NEXT: slice layers.base#20 : base + 0, 256 bytes, at i0 * 256
// TEXT-NEXT: slice layers.trained#21 : trained + 0, 256 bytes, at i0 * 256
// TEXT-NEXT: slice layers.trained#22 : gradients + 0, 256 bytes, at i0 * 256
// TEXT-NEXT: kernel quantize : CpuObject symbol quantize, 0 bytes, hash
// TEXT-NEXT: kernel update : CpuObject symbol update, 0 bytes, hash
// TEXT-NEXT: input ids : i32[tokens] in ids
// TEXT-NEXT: output loss : f32[1] in loss#19
// TEXT-NEXT: staging staging#0
// TEXT-NEXT: unit layers.base : 512 bytes in layers.base#20 layers(0, 1) begin load.begin.layers.base store load.store.layers.base
// TEXT-NEXT: unit layers.trained : 512 bytes in layers.trained#21 layers(0, 1) gradient layers.trained#22
// TEXT-NEXT: parameter q : <8x8x!qt.nf4<block = 64, scale = f32>> in layers.base load 1 pieces load.q hf "layers.{layer}.q.weight" gguf "blk.{layer}.q.weight" rope_heads 2
// TEXT-NEXT: component codes : u8[32] at 0
// TEXT-NEXT: component absmax : f32[1] at 64
// TEXT-NEXT: parameter a : <2x8xf32> in layers.trained trainable kaiming_uniform(8) hf "layers.{layer}.a.weight"
// TEXT-NEXT: component data : f32[16] at 0
// TEXT-NEXT: function load.begin.layers.base() {
// TEXT-NEXT: fill layers.base.loading#1 = 0, 512 bytes on compute  // 0: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: }
// TEXT-NEXT: function load.q(i0 < 1) {
// TEXT-NEXT: launch quantize grid(1) args(staging#2, q.codes, q.absmax) writes_from 1 on compute  // 0: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: }
// TEXT-NEXT: function load.store.layers.base(i0 < 2) {
// TEXT-NEXT: record e1 on compute  // 0: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: wait e1 on reduce  // 1: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: reduce_scatter world u8 layers.base.loading#5 -> layers.base#6[i0], 2 ranges of 256 on reduce  // 2: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: record e0 on reduce  // 3: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: wait e0 on compute  // 4: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: }
// TEXT-NEXT: function micro_step() {
// TEXT-NEXT: fill t#7 = 0, tokens*16 bytes on compute  // 0: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: loop i1 < 2 {  // 1: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: record e2 on compute  // 2: {{.*}}exec-serialize.mlir:{{[0-9]+}}:7
// TEXT-NEXT: wait e2 on gather  // 3: {{.*}}exec-serialize.mlir:{{[0-9]+}}:7
// TEXT-NEXT: all_gather shard layers.trained#8[i1] -> whole#9, 256 bytes on gather  // 4: {{.*}}exec-serialize.mlir:{{[0-9]+}}:7
// TEXT-NEXT: record e0 on gather  // 5: {{.*}}exec-serialize.mlir:{{[0-9]+}}:7
// TEXT-NEXT: wait e0 on compute  // 6: {{.*}}exec-serialize.mlir:{{[0-9]+}}:7
// TEXT-NEXT: launch update grid(tokens*4/32) args(t#10[i1], a.gradient[i1], min(64, tokens - 64*i1), %lr) writes_from 1 flops(4096) on compute  // 7: {{.*}}exec-serialize.mlir:{{[0-9]+}}:7
// TEXT-NEXT: gemm f32 t#14(pitch 2) = 0.5 * t#12[i1](pitch 8) * whole#13[i1]'(pitch 8) + 1 * c, m(16) n(2) k(8) on compute  // 8: {{.*}}exec-serialize.mlir:{{[0-9]+}}:7
// TEXT-NEXT: }
// TEXT-NEXT: record e3 on compute  // 9: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: wait e3 on reduce  // 10: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: all_reduce replica f32 sum, 128 elements on reduce  // 11: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: record e1 on reduce  // 12: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: wait e1 on compute  // 13: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: copy loss#17 = t#16, 4 bytes on compute  // 14: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: }

exec.plan @sample attributes {config = {D = 64 : i64}} {
  fsdp.mesh @mesh ranks = 4 shards = 2
  exec.arena @base {bytes = 512 : i64}
  exec.arena @trained {bytes = 512 : i64}
  exec.arena @gradients {bytes = 512 : i64}
  exec.arena @step {bytes = 4096 : i64}
  exec.arena @activations {bytes = 3072 : i64, contents = {t = 2048 : i64, whole = 512 : i64}}
  exec.arena @staging {bytes = 768 : i64, shares = @activations}
  exec.scalar @tokens {max = 128 : i64}
  exec.scalar @lr
  exec.port "ids" input i32 at @step[0] extent = #kern.extent<scalar = "tokens", cap = 128>
  exec.port "loss" f32 at @step[512] extent = #kern.extent<add = 1, cap = 1>
  exec.unit @layers.base in @base[0] bytes = 512 {layers = array<i32: 0, 1>,
    begin = @load.begin.layers.base, store = @load.store.layers.base}
  exec.unit @layers.trained in @trained[0] bytes = 512 {layers = array<i32: 0, 1>, gradient = 0 : i64}
  exec.param @q : tensor<8x8x!qt.nf4<block = 64, scale = f32>> in @layers.base {
    hf = "layers.{layer}.q.weight", gguf = "blk.{layer}.q.weight", gguf_rope_heads = 2 : i64,
    pieces = 1 : i64, loader = {piece = @load.q},
    parts = [{name = "codes", type = "u8", offset = 0 : i64, elements = 32 : i64},
             {name = "absmax", type = "f32", offset = 64 : i64, elements = 1 : i64}]}
  exec.param @a : tensor<2x8xf32> in @layers.trained {
    hf = "layers.{layer}.a.weight", init = "kaiming_uniform", trainable,
    parts = [{name = "data", type = "f32", offset = 0 : i64, elements = 16 : i64}]}
  kern.func @quantize(%x: memref<8x8xf32>, %c: memref<32xi8>, %s: memref<1xf32>) grid(%i) {
  }
  kern.func @update(%x: memref<?xf32>, %y: memref<16xf32>, %n: i64, %s: f64) grid(%i) {
  }
  exec.func @load.begin.layers.base {
    %w = exec.slice "layers.base.loading" of @staging[256] bytes = 512
    exec.fill %w bytes = #kern.extent<add = 512, cap = 512> stream = 0
  }
  exec.func @load.q attributes {index_count = 1 : i64} {
    %x = exec.slice "staging" of @staging[0] bytes = 256
    %c = exec.slice "q.codes" of @staging[256] bytes = 32
    %s = exec.slice "q.absmax" of @staging[320] bytes = 4
    exec.launch @quantize reads(%x) writes(%c, %s) grid = #kern.extent<add = 1, cap = 1>
      {extents = [], scalars = []} stream = 0
  }
  exec.func @load.store.layers.base attributes {index_count = 2 : i64} {
    %w = exec.slice "layers.base.loading" of @staging[256] bytes = 512
    %r = exec.slice "layers.base" of @base[0] bytes = 256 {stride = 256 : i64}
    exec.record 1 stream = 0
    exec.wait 1 stream = 2
    exec.reduce_scatter %w to %r elements = 256 i8 {event = 0 : i64, group = "world", ranges = 2 : i64} stream = 2
    exec.record 0 stream = 2
    exec.wait 0 stream = 0
  }
  exec.func @micro_step {
    %t = exec.slice "t" of @activations[0] bytes = 2048
    exec.fill %t bytes = #kern.extent<scalar = "tokens", mul = 16, cap = 2048> stream = 0
    exec.loop count = #kern.extent<add = 2, cap = 2> {
      %r = exec.slice "layers.trained" of @trained[256] bytes = 256 {stride = -256 : i64, level = 1 : i64,
        unit = @layers.trained, ordinals = array<i64: 1, 0>}
      %whole = exec.slice "whole" of @activations[2048] bytes = 512
      exec.record 2 stream = 0
      exec.wait 2 stream = 1
      exec.all_gather %r to %whole bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
      exec.record 0 stream = 1
      exec.wait 0 stream = 0
      %a = exec.subslice %whole[0] bytes = 64 {level = 1 : i64, unit = @layers.trained, ordinals = array<i64: 1, 0>}
      %g = exec.slice "a.gradient" of @gradients[256] bytes = 64 {stride = -256 : i64, level = 1 : i64}
      %u = exec.subslice %t[0] bytes = 512 {level = 1 : i64, table = array<i64: 0, 1024>}
      exec.launch @update reads(%u) writes(%g) grid = #kern.extent<scalar = "tokens", mul = 4, div = 32, cap = 16>
        {extents = [#kern.extent<scalar = "tokens", index_mul = -64, cap = 64>], scalars = ["lr"], flops = 4096.0 : f64} stream = 0
      %v = exec.subslice %t[512] bytes = 512
      exec.gemm %u, %a into %v f32 {trans_b, alpha = 0.5, beta = 1.0, m = #kern.extent<add = 16, cap = 16>,
        n = #kern.extent<add = 2, cap = 2>, k = #kern.extent<add = 8, cap = 8>, lda = 8, ldb = 8, ldc = 2} stream = 0
    }
    %sum = exec.slice "sum" of @gradients[0] bytes = 512
    exec.record 3 stream = 0
    exec.wait 3 stream = 2
    exec.all_reduce %sum elements = 128 f32 {event = 1 : i64, group = "replica"} stream = 2
    exec.record 1 stream = 2
    exec.wait 1 holds(%sum) stream = 0
    %loss = exec.slice "loss" of @step[512] bytes = 4
    exec.copy %t to %loss bytes = #kern.extent<add = 4, cap = 4> stream = 0
  }
}
