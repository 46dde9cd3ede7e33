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
// TEXT-NEXT: scalar tokens : i64 max 128
// TEXT-NEXT: scalar lr : f64
// TEXT-NEXT: stream compute
// TEXT-NEXT: arena base : 1024 bytes
// TEXT-NEXT: arena trained : 256 bytes
// TEXT-NEXT: arena gradients : 256 bytes
// TEXT-NEXT: arena step : 4096 bytes
// TEXT-NEXT: arena staging : 256 bytes
// TEXT-NEXT: arena activations : 2048 bytes
// TEXT-NEXT: slice staging#0 : staging + 0, 256 bytes
// TEXT-NEXT: slice staging#1 : staging + 0, 256 bytes
// TEXT-NEXT: slice q.codes : base + 0, 32 bytes, at i0 * 256
// TEXT-NEXT: slice q.absmax : base + 64, 4 bytes, at i0 * 256
// TEXT-NEXT: slice t#4 : activations + 0, 2048 bytes
// TEXT-NEXT: slice t#5 : activations + 0, 512 bytes, at [0, 1024][i1]
// TEXT-NEXT: slice a.gradient : gradients + 64, 64 bytes, at i1 * -64
// TEXT-NEXT: slice t#7 : activations + 0, 512 bytes, at [0, 1024][i1]
// TEXT-NEXT: slice a#8 : trained + 0, 64 bytes, at i1 * 64
// TEXT-NEXT: slice t#9 : activations + 512, 512 bytes
// TEXT-NEXT: slice t#10 : activations + 0, 2048 bytes
// TEXT-NEXT: slice loss#11 : step + 512, 4 bytes
// TEXT-NEXT: slice ids : step + 0, 512 bytes
// TEXT-NEXT: slice loss#13 : step + 512, 4 bytes
// TEXT-NEXT: slice q#14 : base + 0, 32 bytes, at i0 * 256
// TEXT-NEXT: slice q#15 : base + 64, 4 bytes, at i0 * 256
// TEXT-NEXT: slice a#16 : trained + 0, 64 bytes, at i0 * 64
// TEXT-NEXT: slice a#17 : gradients + 0, 64 bytes, at i0 * 64
// TEXT-NEXT: kernel quantize : CpuObject symbol quantize, 0 bytes, hash
// TEXT-NEXT: kernel update : CpuObject symbol update, 0 bytes, hash
// TEXT-NEXT: input ids : i32[tokens] in ids
// TEXT-NEXT: output loss : f32[1] in loss#13
// TEXT-NEXT: staging staging#0
// TEXT-NEXT: parameter q : <8x8x!qt.nf4<block = 64, scale = f32>> layers(0, 1) load load.q hf "layers.{layer}.q.weight" gguf "blk.{layer}.q.weight" rope_heads 2
// TEXT-NEXT: component codes : u8[32] in q#14
// TEXT-NEXT: component absmax : f32[1] in q#15
// TEXT-NEXT: parameter a : <2x8xf32> layers(0, 1) trainable kaiming_uniform(8) gradient a#17 hf "layers.{layer}.a.weight"
// TEXT-NEXT: component data : f32[16] in a#16
// TEXT-NEXT: function load.q(i0 < 2) {
// TEXT-NEXT: launch quantize grid(1) args(staging#1, q.codes[i0], q.absmax[i0])  // 0: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: }
// TEXT-NEXT: function micro_step() {
// TEXT-NEXT: fill t#4 = 0, tokens*16 bytes  // 0: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: loop i1 < 2 {  // 1: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: launch update grid(tokens*4/32) args(t#5[i1], a.gradient[i1], min(64, tokens - 64*i1), %lr)  // 2: {{.*}}exec-serialize.mlir:{{[0-9]+}}:7
// TEXT-NEXT: gemm f32 t#9(pitch 2) = 0.5 * t#7[i1](pitch 8) * a#8[i1]'(pitch 8) + 1 * c, m(16) n(2) k(8)  // 3: {{.*}}exec-serialize.mlir:{{[0-9]+}}:7
// TEXT-NEXT: }
// TEXT-NEXT: copy loss#11 = t#10, 4 bytes  // 4: {{.*}}exec-serialize.mlir:{{[0-9]+}}:5
// TEXT-NEXT: }

exec.plan @sample attributes {config = {D = 64 : i64}} {
  exec.arena @base {bytes = 1024 : i64}
  exec.arena @trained {bytes = 256 : i64}
  exec.arena @gradients {bytes = 256 : i64}
  exec.arena @step {bytes = 4096 : i64}
  exec.arena @staging {bytes = 256 : i64}
  exec.arena @activations {bytes = 2048 : i64}
  exec.scalar @tokens {max = 128 : i64}
  exec.scalar @lr
  exec.port "ids" input i32 at @step[0] extent = #kern.extent<scalar = "tokens", cap = 128>
  exec.port "loss" f32 at @step[512] extent = #kern.extent<add = 1, cap = 1>
  exec.param @q : tensor<8x8x!qt.nf4<block = 64, scale = f32>> in @base stride = 256 {
    hf = "layers.{layer}.q.weight", gguf = "blk.{layer}.q.weight", gguf_rope_heads = 2 : i64, layers = array<i32: 0, 1>,
    load = @load.q, parts = [{name = "codes", type = "u8", offset = 0 : i64, elements = 32 : i64},
                             {name = "absmax", type = "f32", offset = 64 : i64, elements = 1 : i64}]}
  exec.param @a : tensor<2x8xf32> in @trained stride = 64 {
    hf = "layers.{layer}.a.weight", layers = array<i32: 0, 1>, init = "kaiming_uniform", trainable, gradient = 0 : i64,
    parts = [{name = "data", type = "f32", offset = 0 : i64, elements = 16 : i64}]}
  kern.func @quantize(%x: memref<8x8xf32>, %c: memref<32xi8>, %s: memref<1xf32>) grid(%i) {
  }
  kern.func @update(%x: memref<?xf32>, %y: memref<16xf32>, %n: i64, %s: f64) grid(%i) {
  }
  exec.func @load.q attributes {index_count = 2 : i64} {
    %x = exec.slice "staging" of @staging[0] bytes = 256
    %c = exec.slice "q.codes" of @base[0] bytes = 32 {stride = 256 : i64}
    %s = exec.slice "q.absmax" of @base[64] bytes = 4 {stride = 256 : i64}
    exec.launch @quantize reads(%x) writes(%c, %s) grid = #kern.extent<add = 1, cap = 1>
      {extents = [], scalars = []} stream = 0
  }
  exec.func @micro_step {
    %t = exec.slice "t" of @activations[0] bytes = 2048
    exec.fill %t bytes = #kern.extent<scalar = "tokens", mul = 16, cap = 2048> stream = 0
    exec.loop count = #kern.extent<add = 2, cap = 2> {
      %a = exec.slice "a" of @trained[0] bytes = 64 {stride = 64 : i64, level = 1 : i64}
      %g = exec.slice "a.gradient" of @gradients[64] bytes = 64 {stride = -64 : i64, level = 1 : i64}
      %u = exec.subslice %t[0] bytes = 512 {level = 1 : i64, table = array<i64: 0, 1024>}
      exec.launch @update reads(%u) writes(%g) grid = #kern.extent<scalar = "tokens", mul = 4, div = 32, cap = 16>
        {extents = [#kern.extent<scalar = "tokens", index_mul = -64, cap = 64>], scalars = ["lr"]} stream = 0
      %v = exec.subslice %t[512] bytes = 512
      exec.gemm %u, %a into %v f32 {trans_b, alpha = 0.5, beta = 1.0, m = #kern.extent<add = 16, cap = 16>,
        n = #kern.extent<add = 2, cap = 2>, k = #kern.extent<add = 8, cap = 8>, lda = 8, ldb = 8, ldc = 2} stream = 0
    }
    %loss = exec.slice "loss" of @step[512] bytes = 4
    exec.copy %t to %loss bytes = #kern.extent<add = 4, cap = 4> stream = 0
  }
}
