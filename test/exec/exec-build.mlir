// RUN: %opt %s --exec-build --split-input-file | FileCheck %s

// One kind, three layers: one loop. The carried value is in two slots by turns;
// the weight moves by its unit's size. An argument of the host lies in @step, and
// what the loop leaves is copied out.
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "carry" bytes = 2048
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "x" of @step[0] bytes = 1024
// CHECK-NEXT:   %[[V2:.+]] = exec.subslice %[[V0]][0] bytes = 1024
// CHECK-NEXT:   exec.copy %[[V1]] to %[[V2]] bytes = <scalar = "tokens", mul = 8, cap = 1024> stream = 0
// CHECK-NEXT:   exec.loop count = <add = 3, cap = 3> {
// CHECK-NEXT:     %[[V5:.+]] = exec.subslice %[[V0]][0] bytes = 1024 {level = 1 : i64, table = array<i64: 1024, 0, 1024>}
// CHECK-NEXT:     %[[V6:.+]] = exec.subslice %[[V0]][0] bytes = 1024 {level = 1 : i64, table = array<i64: 0, 1024, 0>}
// CHECK-NEXT:     %[[V7:.+]] = exec.slice "w" of @base[0] bytes = 256 {level = 1 : i64, stride = 512 : i64}
// CHECK-NEXT:     exec.launch @k reads(%[[V6]], %[[V7]]) writes(%[[V5]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[V3:.+]] = exec.subslice %[[V0]][1024] bytes = 1024
// CHECK-NEXT:   %[[V4:.+]] = exec.slice "out" of @step[1024] bytes = 1024
// CHECK-NEXT:   exec.copy %[[V3]] to %[[V4]] bytes = <scalar = "tokens", mul = 8, cap = 1024> stream = 0
!x = tensor<128x2xf32, #tfm.dims<"T", "">>
!w = tensor<64xf32>
tfm.architecture @one_kind attributes {config = {D = 2 : i64}} {
  tfm.param @w per_layer : !w {hf = "w.{layer}", gguf = "g.{layer}"}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @layers.base [@w] layers = [0, 1, 2] {bytes = 512 : i64, parts = [#fsdp.part<@w, "data", offset = 0, bytes = 256>]}
  kern.func @k(%x: memref<?x2xf32>, %w: memref<?xf32>, %y: memref<?x2xf32>) grid(%i) {
  }
  tfm.layer @a(%x: !x) -> !x {
    %g = fsdp.local @layers.base
    %w = fsdp.view %g [@w] : !w
    %e = kern.empty : !x
    %y = kern.call @k(%x, %w) into(%e) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x, !w) into(!x)
    tfm.return %y : !x
  }
  tfm.func @run(%x: !x {tfm.port = "x"}) {
    %y = tfm.stack(%x) kinds = [@a] {layers = array<i32: 0, 0, 0>} : !x -> !x
    %p = kern.port "out" : !x
    %c = kern.copy %y into %p : !x into !x
    tfm.return
  }
}

// -----

// 0, 1, 0, 1, 0: (0, 1) twice and 0 once. Two layers an iteration, each with its
// own places; a parameter that only kind 1 has counts its own layers.
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "carry" bytes = 64
// CHECK-NEXT:   %[[V1:.+]] = exec.subslice %[[V0]][32] bytes = 32
// CHECK-NEXT:   %[[V2:.+]] = exec.slice "x" of @step[0] bytes = 32
// CHECK-NEXT:   %[[V3:.+]] = exec.subslice %[[V0]][0] bytes = 32
// CHECK-NEXT:   exec.copy %[[V2]] to %[[V3]] bytes = <add = 32, cap = 32> stream = 0
// CHECK-NEXT:   exec.loop count = <add = 2, cap = 2> {
// CHECK-NEXT:     %[[V4:.+]] = exec.subslice %[[V0]][0] bytes = 32 {level = 1 : i64}
// CHECK-NEXT:     %[[V5:.+]] = exec.subslice %[[V0]][32] bytes = 32 {level = 1 : i64}
// CHECK-NEXT:     %[[V6:.+]] = exec.subslice %[[V0]][0] bytes = 32 {level = 1 : i64}
// CHECK-NEXT:     %[[V7:.+]] = exec.slice "w" of @base[0] bytes = 256 {level = 1 : i64, stride = 1024 : i64}
// CHECK-NEXT:     exec.launch @k reads(%[[V6]], %[[V7]]) writes(%[[V5]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:     %[[V8:.+]] = exec.subslice %[[V0]][32] bytes = 32 {level = 1 : i64}
// CHECK-NEXT:     %[[V9:.+]] = exec.slice "v" of @base[2560] bytes = 256 {level = 1 : i64, stride = 256 : i64}
// CHECK-NEXT:     exec.launch @k reads(%[[V8]], %[[V9]]) writes(%[[V4]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[V10:.+]] = exec.subslice %[[V0]][0] bytes = 32
// CHECK-NEXT:   %[[V11:.+]] = exec.slice "w" of @base[2048] bytes = 256
// CHECK-NEXT:   exec.launch @k reads(%[[V10]], %[[V11]]) writes(%[[V1]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   %[[V12:.+]] = exec.subslice %[[V0]][32] bytes = 32
!x = tensor<4x2xf32>
tfm.architecture @alternating {
  tfm.param @w per_layer : tensor<64xf32> {hf = "w.{layer}"}
  tfm.param @v per_layer : tensor<64xf32> {hf = "v.{layer}"}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @all [@w] layers = [0, 1, 2, 3, 4] {bytes = 512 : i64, parts = [#fsdp.part<@w, "data", offset = 0, bytes = 256>]}
  fsdp.unit @some [@v] layers = [1, 3] {bytes = 256 : i64, parts = [#fsdp.part<@v, "data", offset = 0, bytes = 256>]}
  kern.func @k(%x: memref<?x2xf32>, %w: memref<?xf32>, %y: memref<?x2xf32>) grid(%i) {
  }
  tfm.layer @a(%x: !x) -> !x {
    %g = fsdp.local @all
    %w = fsdp.view %g [@w] : tensor<64xf32>
    %e = kern.empty : !x
    %y = kern.call @k(%x, %w) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, tensor<64xf32>) into(!x)
    tfm.return %y : !x
  }
  tfm.layer @b(%x: !x) -> !x {
    %g = fsdp.local @some
    %w = fsdp.view %g [@v] : tensor<64xf32>
    %e = kern.empty : !x
    %y = kern.call @k(%x, %w) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, tensor<64xf32>) into(!x)
    tfm.return %y : !x
  }
  tfm.func @run(%x: !x {tfm.port = "x"}) {
    %y = tfm.stack(%x) kinds = [@a, @b] {layers = array<i32: 0, 1, 0, 1, 0>} : !x -> !x
    tfm.return
  }
}

// -----

// 0, 1, 1, 2: runs of one, of two, of one.
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "carry" bytes = 64
// CHECK-NEXT:   %[[V1:.+]] = exec.subslice %[[V0]][32] bytes = 32
// CHECK-NEXT:   %[[V2:.+]] = exec.slice "x" of @step[0] bytes = 32
// CHECK-NEXT:   %[[V3:.+]] = exec.subslice %[[V0]][0] bytes = 32
// CHECK-NEXT:   exec.copy %[[V2]] to %[[V3]] bytes = <add = 32, cap = 32> stream = 0
// CHECK-NEXT:   %[[V4:.+]] = exec.subslice %[[V0]][0] bytes = 32
// CHECK-NEXT:   exec.launch @l reads(%[[V4]]) writes(%[[V1]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.loop count = <add = 2, cap = 2> {
// CHECK-NEXT:     %[[V5:.+]] = exec.subslice %[[V0]][0] bytes = 32 {level = 1 : i64, stride = 32 : i64}
// CHECK-NEXT:     %[[V6:.+]] = exec.subslice %[[V0]][32] bytes = 32 {level = 1 : i64, stride = -32 : i64}
// CHECK-NEXT:     %[[V7:.+]] = exec.slice "w" of @base[512] bytes = 256 {level = 1 : i64, stride = 512 : i64}
// CHECK-NEXT:     exec.launch @k reads(%[[V6]], %[[V7]]) writes(%[[V5]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[V8:.+]] = exec.subslice %[[V0]][32] bytes = 32
// CHECK-NEXT:   %[[V9:.+]] = exec.subslice %[[V0]][0] bytes = 32
// CHECK-NEXT:   exec.copy %[[V8]] to %[[V9]] bytes = <add = 32, cap = 32> stream = 0
// CHECK-NEXT:   %[[V10:.+]] = exec.subslice %[[V0]][0] bytes = 32
!x = tensor<4x2xf32>
tfm.architecture @irregular {
  tfm.param @w per_layer : tensor<64xf32> {hf = "w.{layer}"}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @all [@w] layers = [0, 1, 2, 3] {bytes = 512 : i64, parts = [#fsdp.part<@w, "data", offset = 0, bytes = 256>]}
  kern.func @k(%x: memref<?x2xf32>, %w: memref<?xf32>, %y: memref<?x2xf32>) grid(%i) {
  }
  kern.func @l(%x: memref<?x2xf32>, %y: memref<?x2xf32>) grid(%i) {
  }
  tfm.layer @a(%x: !x) -> !x {
    %e = kern.empty : !x
    %y = kern.call @l(%x) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x) into(!x)
    tfm.return %y : !x
  }
  tfm.layer @b(%x: !x) -> !x {
    %g = fsdp.local @all
    %w = fsdp.view %g [@w] : tensor<64xf32>
    %e = kern.empty : !x
    %y = kern.call @k(%x, %w) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, tensor<64xf32>) into(!x)
    tfm.return %y : !x
  }
  // The identity: its result is copied, since no temporary of its own holds it.
  tfm.layer @c(%x: !x) -> !x {
    tfm.return %x : !x
  }
  tfm.func @run(%x: !x {tfm.port = "x"}) {
    %y = tfm.stack(%x) kinds = [@a, @b, @c] {layers = array<i32: 0, 1, 1, 2>} : !x -> !x
    tfm.return
  }
}

// -----

// Residuals: a slot for each layer of a kind, read by its ordinal from the
// highest layer down. A kind that keeps its own input keeps the carried value,
// which then has a slot a layer. Frozen until the run, gradients and flat buffers
// are the unit's.
// CHECK-LABEL: exec.func @micro_step {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "dcarry" bytes = 64
// CHECK-NEXT:   %[[V1:.+]] = exec.subslice %[[V0]][32] bytes = 32
// CHECK-NEXT:   %[[V2:.+]] = exec.subslice %[[V0]][0] bytes = 32
// CHECK-NEXT:   %[[V3:.+]] = exec.subslice %[[V0]][32] bytes = 32
// CHECK-NEXT:   %[[V4:.+]] = exec.alloc "carry" bytes = 128
// CHECK-NEXT:   %[[V5:.+]] = exec.alloc "residual" bytes = 64
// CHECK-NEXT:   %[[V6:.+]] = exec.subslice %[[V5]][32] bytes = 32
// CHECK-NEXT:   %[[V7:.+]] = exec.subslice %[[V4]][96] bytes = 32
// CHECK-NEXT:   %[[V8:.+]] = exec.alloc "residual" bytes = 32
// CHECK-NEXT:   %[[V9:.+]] = exec.subslice %[[V8]][0] bytes = 32
// CHECK-NEXT:   %[[V10:.+]] = exec.subslice %[[V4]][64] bytes = 32
// CHECK-NEXT:   %[[V11:.+]] = exec.subslice %[[V5]][0] bytes = 32
// CHECK-NEXT:   %[[V12:.+]] = exec.subslice %[[V4]][32] bytes = 32
// CHECK-NEXT:   %[[V13:.+]] = exec.slice "x" of @step[0] bytes = 32
// CHECK-NEXT:   %[[V14:.+]] = exec.subslice %[[V4]][0] bytes = 32
// CHECK-NEXT:   exec.copy %[[V13]] to %[[V14]] bytes = <add = 32, cap = 32> stream = 0
// CHECK-NEXT:   %[[V15:.+]] = exec.subslice %[[V4]][0] bytes = 32
// CHECK-NEXT:   exec.launch @f reads(%[[V15]]) writes(%[[V12]], %[[V11]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   %[[V16:.+]] = exec.subslice %[[V4]][32] bytes = 32
// CHECK-NEXT:   exec.launch @f reads(%[[V16]]) writes(%[[V10]], %[[V9]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   %[[V17:.+]] = exec.subslice %[[V4]][64] bytes = 32
// CHECK-NEXT:   exec.launch @f reads(%[[V17]]) writes(%[[V7]], %[[V6]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   %[[V18:.+]] = exec.subslice %[[V4]][96] bytes = 32
// CHECK-NEXT:   %[[V19:.+]] = exec.subslice %[[V0]][0] bytes = 32
// CHECK-NEXT:   exec.copy %[[V18]] to %[[V19]] bytes = <add = 32, cap = 32> stream = 0
// CHECK-NEXT:   %[[V20:.+]] = exec.subslice %[[V0]][0] bytes = 32
// CHECK-NEXT:   %[[V21:.+]] = exec.subslice %[[V4]][64] bytes = 32
// CHECK-NEXT:   %[[V22:.+]] = exec.subslice %[[V5]][32] bytes = 32
// CHECK-NEXT:   %[[V23:.+]] = exec.slice "w.gradient" of @gradients[512] bytes = 256
// CHECK-NEXT:   exec.launch @g reads(%[[V20]], %[[V21]], %[[V22]]) writes(%[[V3]], %[[V23]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   %[[V24:.+]] = exec.subslice %[[V0]][32] bytes = 32
// CHECK-NEXT:   %[[V25:.+]] = exec.subslice %[[V8]][0] bytes = 32
// CHECK-NEXT:   exec.launch @h reads(%[[V24]], %[[V25]]) writes(%[[V2]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   %[[V26:.+]] = exec.subslice %[[V0]][0] bytes = 32
// CHECK-NEXT:   %[[V27:.+]] = exec.subslice %[[V4]][0] bytes = 32
// CHECK-NEXT:   %[[V28:.+]] = exec.subslice %[[V5]][0] bytes = 32
// CHECK-NEXT:   %[[V29:.+]] = exec.slice "w.gradient" of @gradients[0] bytes = 256
// CHECK-NEXT:   exec.launch @g reads(%[[V26]], %[[V27]], %[[V28]]) writes(%[[V1]], %[[V29]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   %[[V30:.+]] = exec.subslice %[[V0]][32] bytes = 32
// CHECK-LABEL: exec.func @optimizer_step {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "t.data" of @trained[0] bytes = 768
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "t.gradient" of @gradients[0] bytes = 768
// CHECK-NEXT:   %[[V2:.+]] = exec.slice "t.state1" of @moments[768] bytes = 768
// CHECK-NEXT:   exec.launch @sgd reads(%[[V1]], %[[V2]]) writes(%[[V0]]) grid = <add = 192, cap = 192> {extents = [], scalars = []} stream = 0
!x = tensor<4x2xf32>
tfm.architecture @gradients {
  tfm.param @w per_layer : tensor<64xf32> {hf = "w.{layer}", trainable}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @t [@w] layers = [0, 1, 2] {trainable, bytes = 256 : i64, parts = [#fsdp.part<@w, "data", offset = 0, bytes = 256>]}
  kern.func @f(%x: memref<?x2xf32>, %y: memref<?x2xf32>, %r: memref<?x2xf32>) grid(%i) {
  }
  kern.func @g(%dy: memref<?x2xf32>, %x: memref<?x2xf32>, %r: memref<?x2xf32>, %dx: memref<?x2xf32>, %dw: memref<?xf32>) grid(%i) {
  }
  kern.func @h(%dy: memref<?x2xf32>, %r: memref<?x2xf32>, %dx: memref<?x2xf32>) grid(%i) {
  }
  kern.func @sgd(%g: memref<?xf32>, %s: memref<?xf32>, %w: memref<?xf32>) grid(%i) {
  }
  tfm.layer @a.forward(%x: !x) -> (!x, !x, !x) {
    %e = kern.empty : !x
    %e1 = kern.empty : !x
    %y:2 = kern.call @f(%x) into(%e, %e1) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x) into(!x, !x)
    tfm.return %y#0, %x, %y#1 : !x, !x, !x
  }
  tfm.layer @b.forward(%x: !x) -> (!x, !x) {
    %e = kern.empty : !x
    %e1 = kern.empty : !x
    %y:2 = kern.call @f(%x) into(%e, %e1) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x) into(!x, !x)
    tfm.return %y#0, %y#1 : !x, !x
  }
  tfm.layer @a.backward(%dy: !x, %x: !x, %r: !x) -> !x {
    %e = kern.empty : !x
    %d = fsdp.gradient [@w] : tensor<64xf32>
    %y:2 = kern.call @g(%dy, %x, %r) into(%e, %d) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !x, !x) into(!x, tensor<64xf32>)
    tfm.return %y#0 : !x
  }
  tfm.layer @b.backward(%dy: !x, %r: !x) -> !x {
    %e = kern.empty : !x
    %y = kern.call @h(%dy, %r) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !x) into(!x)
    tfm.return %y : !x
  }
  tfm.func @micro_step(%x: !x {tfm.port = "x"}) {
    %y, %s = tfm.stack(%x) kinds = [@a.forward, @b.forward] {layers = array<i32: 0, 1, 0>} : !x -> !x, !tfm.saved
    %d = tfm.stack_grad(%y) saved(%s) kinds = [@a.backward, @b.backward] {layers = array<i32: 0, 1, 0>} : !x -> !x
    tfm.return
  }
  tfm.func @optimizer_step() {
    %w = fsdp.flat @t "data" : tensor<192xf32>
    %g = fsdp.flat @t "gradient" : tensor<192xf32>
    %s = fsdp.flat @t "state1" : tensor<192xf32>
    %u = kern.call @sgd(%g, %s) into(%w) grid = #kern.extent<add = 192, cap = 192> {extents = [], scalars = []} : (tensor<192xf32>, tensor<192xf32>) into(tensor<192xf32>)
    tfm.return
  }
}

// -----

// A value that is written over while still needed is copied first; one that is
// not needed any more is written where it is.
// CHECK-LABEL: exec.func @needed {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "{{[a-z_]+}}" bytes = 1024
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "copy" bytes = 1024
// CHECK-NEXT:   %[[V2:.+]] = exec.alloc "{{[a-z_]+}}" bytes = 1024
// CHECK-NEXT:   %[[V3:.+]] = exec.slice "x" of @step[0] bytes = 1024
// CHECK-NEXT:   exec.launch @make reads(%[[V3]]) writes(%[[V2]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.copy %[[V2]] to %[[V1]] bytes = <scalar = "tokens", mul = 8, cap = 1024> stream = 0
// CHECK-NEXT:   exec.launch @inplace reads(%[[V3]]) writes(%[[V1]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.launch @make reads(%[[V2]]) writes(%[[V0]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-LABEL: exec.func @not_needed {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "{{[a-z_]+}}" bytes = 1024
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "x" of @step[0] bytes = 1024
// CHECK-NEXT:   exec.launch @make reads(%[[V1]]) writes(%[[V0]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.launch @inplace reads(%[[V1]]) writes(%[[V0]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-LABEL: exec.func @argument {
// CHECK-NEXT:   %[[C:.+]] = exec.alloc "copy" bytes = 1024
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "x" of @step[0] bytes = 1024
// CHECK-NEXT:   exec.copy %[[V0]] to %[[C]] bytes = <scalar = "tokens", mul = 8, cap = 1024> stream = 0
// CHECK-NEXT:   exec.launch @inplace reads(%[[V0]]) writes(%[[C]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-LABEL: exec.func @given {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "carry" bytes = 2048
// CHECK-NEXT:   %[[V1:.+]] = exec.subslice %[[V0]][0] bytes = 1024
// CHECK-NEXT:   %[[V2:.+]] = exec.alloc "{{[a-z_]+}}" bytes = 1024
// CHECK-NEXT:   %[[V3:.+]] = exec.slice "x" of @step[0] bytes = 1024
// CHECK-NEXT:   exec.launch @make reads(%[[V3]]) writes(%[[V2]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.launch @make reads(%[[V3]]) writes(%[[V1]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.loop count = <add = 2, cap = 2> {
// CHECK-NEXT:     %[[V5:.+]] = exec.subslice %[[V0]][1024] bytes = 1024 {level = 1 : i64, stride = -1024 : i64}
// CHECK-NEXT:     %[[V6:.+]] = exec.alloc "copy" bytes = 1024
// CHECK-NEXT:     %[[V7:.+]] = exec.subslice %[[V0]][0] bytes = 1024 {level = 1 : i64, stride = 1024 : i64}
// CHECK-NEXT:     exec.copy %[[V7]] to %[[V6]] bytes = <scalar = "tokens", mul = 8, cap = 1024> stream = 0
// CHECK-NEXT:     exec.launch @inplace reads(%[[V2]]) writes(%[[V6]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:     exec.copy %[[V2]] to %[[V5]] bytes = <scalar = "tokens", mul = 8, cap = 1024> stream = 0
// CHECK-NEXT:     exec.launch @inplace reads(%[[V6]]) writes(%[[V5]]) grid = <scalar = "tokens", cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[V4:.+]] = exec.subslice %[[V0]][0] bytes = 1024
// CHECK-LABEL: exec.func @offsets {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "{{[a-z_]+}}" bytes = 256
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "{{[a-z_]+}}" bytes = 4096
// CHECK-NEXT:   exec.fill %[[V1]] bytes = <add = 4096, cap = 4096> stream = 0
// CHECK-NEXT:   exec.fill %[[V0]] bytes = <add = 256, cap = 256> stream = 0
// CHECK-NEXT:   %[[V2:.+]] = exec.subslice %[[V1]][16] bytes = 4080
// CHECK-NEXT:   %[[V3:.+]] = exec.subslice %[[V1]][16] bytes = 4080
// CHECK-NEXT:   exec.gemm %[[V3]], %[[V0]] into %[[V2]] f32 {alpha = 1.000000e+00 : f64, beta = 1.000000e+00 : f64, k = #kern.extent<add = 4, cap = 4>, lda = 8 : i64, ldb = 8 : i64, ldc = 8 : i64, m = #kern.extent<add = 128, cap = 128>, n = #kern.extent<add = 4, cap = 4>} stream = 0
!x = tensor<128x2xf32, #tfm.dims<"T", "">>
tfm.architecture @copies {
  fsdp.mesh @mesh ranks = 1
  kern.func @make(%x: memref<?x2xf32>, %y: memref<?x2xf32>) grid(%i) {
  }
  kern.func @inplace(%t: memref<?x2xf32>, %x: memref<?x2xf32>) grid(%i) {
  }
  tfm.func @needed(%x: !x {tfm.port = "x"}) {
    %e = kern.empty : !x
    %y = kern.call @make(%x) into(%e) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x) into(!x)
    %z = kern.call @inplace(%x) into(%y) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x) into(!x)
    %e1 = kern.empty : !x
    %w = kern.call @make(%y) into(%e1) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x) into(!x)
    tfm.return
  }
  tfm.func @not_needed(%x: !x {tfm.port = "x"}) {
    %e = kern.empty : !x
    %y = kern.call @make(%x) into(%e) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x) into(!x)
    %z = kern.call @inplace(%x) into(%y) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x) into(!x)
    tfm.return
  }
  // The host's array is the host's.
  tfm.func @argument(%x: !x {tfm.port = "x"}) {
    %z = kern.call @inplace(%x) into(%x) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x) into(!x)
    tfm.return
  }
  // What a layer is given is not its own: the carried value, what is shared.
  tfm.layer @k(%x: !x, %s: !x) -> !x {
    %y = kern.call @inplace(%s) into(%x) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x) into(!x)
    %z = kern.call @inplace(%y) into(%s) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x) into(!x)
    tfm.return %z : !x
  }
  tfm.func @given(%x: !x {tfm.port = "x"}) {
    %e = kern.empty : !x
    %s = kern.call @make(%x) into(%e) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x) into(!x)
    %e1 = kern.empty : !x
    %y0 = kern.call @make(%x) into(%e1) grid = #kern.extent<scalar = "tokens", cap = 128> {extents = [], scalars = []} : (!x) into(!x)
    %y = tfm.stack(%y0) shared(%s) kinds = [@k] {layers = array<i32: 0, 0>} : !x, !x -> !x
    tfm.return
  }
  // Offsets of destinations and of products' operands are in elements.
  tfm.func @offsets() {
    %e = kern.empty : tensor<128x8xf32>
    %f = kern.fill into %e : tensor<128x8xf32>
    %b = kern.empty : tensor<8x8xf32>
    %b1 = kern.fill into %b : tensor<8x8xf32>
    %y = kern.gemm %f, %b1 into %f {alpha = 1.0, beta = 1.0, a_offset = 4, c_offset = 4,
      m = #kern.extent<add = 128, cap = 128>, n = #kern.extent<add = 4, cap = 4>, k = #kern.extent<add = 4, cap = 4>,
      lda = 8, ldb = 8, ldc = 8} : tensor<128x8xf32>, tensor<8x8xf32> into tensor<128x8xf32>
    tfm.return
  }
}

// -----

// Chunks: iterations of a static loop; the chunk's rows are parts of the whole,
// results go where they belong.
// CHECK-LABEL: exec.plan @chunks
// CHECK: exec.scalar @labels {max = 512 : i64}
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "rows" bytes = 4096
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "x" of @step[0] bytes = 4096
// CHECK-NEXT:   %[[V2:.+]] = exec.slice "rows" of @step[4096] bytes = 2048
// CHECK-NEXT:   exec.loop count = <add = 4, cap = 4> {
// CHECK-NEXT:     %[[V3:.+]] = exec.subslice %[[V0]][0] bytes = 1024 {level = 1 : i64, stride = 1024 : i64}
// CHECK-NEXT:     %[[V4:.+]] = exec.subslice %[[V1]][0] bytes = 1024 {level = 1 : i64, stride = 1024 : i64}
// CHECK-NEXT:     exec.launch @k reads(%[[V4]]) writes(%[[V3]]) grid = <scalar = "labels", index_mul = -128, cap = 128> {extents = [#kern.extent<scalar = "labels", index_mul = -128, cap = 128>], scalars = ["loss_weight"]} stream = 0
// CHECK-NEXT:   }
!rx = tensor<512x2xf32, #tfm.dims<"R", "">>
!cx = tensor<128x2xf32, #tfm.dims<"C", "">>
tfm.architecture @chunks {
  fsdp.mesh @mesh ranks = 1
  kern.func @k(%x: memref<?x2xf32>, %y: memref<?x2xf32>, %n: i64, %l: f64) grid(%i) {
  }
  tfm.func @body(%x: !cx) -> !cx {
    %e = kern.empty : !cx
    %y = kern.call @k(%x) into(%e) grid = #kern.extent<scalar = "labels", index_mul = -128, cap = 128>
      {extents = [#kern.extent<scalar = "labels", index_mul = -128, cap = 128>], scalars = ["loss_weight"]} : (!cx) into(!cx)
    tfm.return %y : !cx
  }
  tfm.func @run(%x: !rx {tfm.port = "x"}, %rows: tensor<512xi32, #tfm.dims<"R">> {tfm.port = "rows"}) {
    %d = tfm.chunk_loop(%x) body = @body chunk = 128 : (!rx) -> !rx
    tfm.return
  }
}

// -----

// What the plan declares: step scalars with their bounds, the mesh, arenas, ports,
// units with their places (byte offsets in their arenas), parameters with their
// places in units, and what loads them. Functions that load take the number of a
// piece as index or, to store a unit, the ordinal of the layer. What loading needs
// lies where activations will: the staged piece, the buffer of the unit, scratch.
// CHECK-LABEL: exec.plan @declarations attributes {config = {D = 64 : i64}} {
// CHECK-NEXT: exec.scalar @tokens {max = 128 : i64}
// CHECK-NEXT: exec.scalar @lr{{$}}
// CHECK-NEXT: fsdp.mesh @mesh ranks = 1
// CHECK-NEXT: exec.arena @base {bytes = 1024 : i64}
// CHECK-NEXT: exec.arena @trained {bytes = 256 : i64}
// CHECK-NEXT: exec.arena @gradients {bytes = 256 : i64}
// CHECK-NEXT: exec.arena @step {bytes = 512 : i64}
// CHECK-NEXT: exec.arena @activations{{$}}
// CHECK-NEXT: exec.arena @staging {bytes = 1280 : i64, shares = @activations}
// CHECK-NEXT: exec.unit @layers.base in @base[0] bytes = 512 {begin = @load.begin.layers.base, layers = array<i32: 0, 1>, store = @load.store.layers.base}
// CHECK-NEXT: exec.unit @t in @trained[0] bytes = 256 {gradient = 0 : i64}
// CHECK-NEXT: exec.param @q : tensor<16x16x!qt.nf4<block = 64, scale = f32>> in @layers.base {gguf = "g.{layer}", gguf_rope_heads = 4 : i64, hf = "q.{layer}", loader = {piece = @load.q, scales = @load.scales.q}, parts = [{elements = 128 : i64, name = "codes", offset = 0 : i64, type = "u8"}, {elements = 4 : i64, name = "absmax", offset = 128 : i64, type = "f32"}], pieces = 2 : i64}
// CHECK-NEXT: exec.param @a : tensor<64xf32> in @t {init = "zeros", parts = [{elements = 64 : i64, name = "data", offset = 0 : i64, type = "f32"}], trainable}
// CHECK-LABEL: exec.func @load.begin.layers.base {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "layers.base.loading" of @staging[512] bytes = 512
// CHECK-NEXT:   exec.fill %[[V0]] bytes = <add = 512, cap = 512> stream = 0
// CHECK-LABEL: exec.func @load.q attributes {index_count = 2 : i64} {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "staging" of @staging[0] bytes = 512
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "q.codes" of @staging[512] bytes = 64 {stride = 64 : i64}
// CHECK-NEXT:   %[[V2:.+]] = exec.slice "scales" of @staging[1024] bytes = 8 {stride = 8 : i64}
// CHECK-NEXT:   exec.launch @quantize reads(%[[V0]]) writes(%[[V1]], %[[V2]]) grid = <add = 2, cap = 2> {extents = [], scalars = []} stream = 0
// CHECK-LABEL: exec.func @load.scales.q attributes {index_count = 1 : i64} {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "scales" of @staging[1024] bytes = 16
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "q.absmax" of @staging[640] bytes = 16
// CHECK-NEXT:   exec.copy %[[V0]] to %[[V1]] bytes = <add = 16, cap = 16> stream = 0
// CHECK-LABEL: exec.func @load.store.layers.base attributes {index_count = 2 : i64} {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "layers.base.loading" of @staging[512] bytes = 512
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "layers.base" of @base[0] bytes = 512 {stride = 512 : i64}
// CHECK-NEXT:   exec.copy %[[V0]] to %[[V1]] bytes = <add = 512, cap = 512> stream = 0
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "carry" bytes = 512
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "ids" of @step[0] bytes = 512
// CHECK-NEXT:   %[[V2:.+]] = exec.slice "a" of @trained[0] bytes = 256
// CHECK-NEXT:   %[[V3:.+]] = exec.subslice %[[V0]][0] bytes = 256
// CHECK-NEXT:   exec.copy %[[V2]] to %[[V3]] bytes = <add = 256, cap = 256> stream = 0
// CHECK-NEXT:   exec.loop count = <add = 2, cap = 2> {
// CHECK-NEXT:     %[[V4:.+]] = exec.subslice %[[V0]][256] bytes = 256 {level = 1 : i64, stride = -256 : i64}
// CHECK-NEXT:     %[[V5:.+]] = exec.subslice %[[V0]][0] bytes = 256 {level = 1 : i64, stride = 256 : i64}
// CHECK-NEXT:     %[[V6:.+]] = exec.slice "q.codes" of @base[0] bytes = 128 {level = 1 : i64, stride = 512 : i64}
// CHECK-NEXT:     %[[V7:.+]] = exec.slice "q.absmax" of @base[128] bytes = 16 {level = 1 : i64, stride = 512 : i64}
// CHECK-NEXT:     exec.launch @use reads(%[[V1]], %[[V6]], %[[V7]]) writes(%[[V4]]) grid = <scalar = "tokens", cap = 128> {extents = [#kern.extent<scalar = "tokens", mul = 4, cap = 512>], scalars = ["lr"]} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[V8:.+]] = exec.subslice %[[V0]][0] bytes = 256
// CHECK: exec.port "ids" input i32 at @step[0] extent = <scalar = "tokens", cap = 128>
!ids = tensor<128xi32, #tfm.dims<"T">>
tfm.architecture @declarations attributes {config = {D = 64 : i64}} {
  tfm.param @q per_layer : tensor<16x16x!qt.nf4<block = 64, scale = f32>> {hf = "q.{layer}", gguf = "g.{layer}", gguf_rope_heads = 4 : i64}
  tfm.param @a : tensor<64xf32> {init = "zeros", trainable}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @layers.base [@q] layers = [0, 1] {bytes = 512 : i64, parts = [
    #fsdp.part<@q, "codes", offset = 0, bytes = 128>, #fsdp.part<@q, "absmax", offset = 128, bytes = 16>]}
  fsdp.unit @t [@a] {trainable, bytes = 256 : i64, parts = [#fsdp.part<@a, "data", offset = 0, bytes = 256>]}
  kern.func @quantize(%v: memref<?xf32>, %c: memref<?xi8>, %s: memref<?xf32>) grid(%i) {
  }
  kern.func @use(%ids: memref<?xi32>, %c: memref<?xi8>, %s: memref<?xf32>, %y: memref<?xf32>, %n: i64, %lr: f64) grid(%i) {
  }
  // Loading: the unit's buffer is set to zero, each parameter comes in pieces (here
  // two), and the buffer goes where the layer's unit is kept.
  tfm.func @load.begin.layers.base() {
    %w = fsdp.whole @layers.base : tensor<512xi8>
    %f = kern.fill into %w : tensor<512xi8>
    tfm.return
  }
  tfm.func @load.q(%v: tensor<8x16xf32> {tfm.port = "staging"}) {
    %c = fsdp.part_of @q "codes" pieces = 2 : tensor<64xi8>
    %s = fsdp.scratch "scales" pieces = 2 : tensor<2xf32>
    %r:2 = kern.call @quantize(%v) into(%c, %s) grid = #kern.extent<add = 2, cap = 2> {extents = [], scalars = []} : (tensor<8x16xf32>) into(tensor<64xi8>, tensor<2xf32>)
    tfm.return
  }
  tfm.func @load.scales.q() {
    %s = fsdp.scratch "scales" pieces = 1 : tensor<4xf32>
    %t = fsdp.part_of @q "absmax" pieces = 1 : tensor<4xf32>
    %c = kern.copy %s into %t : tensor<4xf32> into tensor<4xf32>
    tfm.return
  }
  tfm.func @load.store.layers.base() {
    fsdp.store @layers.base
    tfm.return
  }
  // A quantised operand is its arrays.
  tfm.layer @k(%y: tensor<64xf32>, %ids: !ids) -> tensor<64xf32> {
    %g = fsdp.local @layers.base
    %q = fsdp.view %g [@q] : tensor<16x16x!qt.nf4<block = 64, scale = f32>>
    %e = kern.empty : tensor<64xf32>
    %r = kern.call @use(%ids, %q) into(%e) grid = #kern.extent<scalar = "tokens", cap = 128>
      {extents = [#kern.extent<scalar = "tokens", mul = 4, cap = 512>], scalars = ["lr"]} : (!ids, tensor<16x16x!qt.nf4<block = 64, scale = f32>>) into(tensor<64xf32>)
    tfm.return %r : tensor<64xf32>
  }
  tfm.func @run(%ids: !ids {tfm.port = "ids"}) {
    %g = fsdp.local @t
    %a = fsdp.view %g [@a] : tensor<64xf32>
    %y = tfm.stack(%a) shared(%ids) kinds = [@k] {layers = array<i32: 0, 0>} : tensor<64xf32>, !ids -> tensor<64xf32>
    tfm.return
  }
}
