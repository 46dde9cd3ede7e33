// RUN: %opt %s --split-input-file --exec-build | FileCheck %s

// What is built holds up to its end.
// RUN: %opt %s --split-input-file --exec-build --exec-schedule-overlap --exec-insert-events --exec-plan-memory --exec-verify-races --exec-verify-memory -o /dev/null

// A rank keeps half of each unit. A gather takes the layer's half of that from its
// arena, and what is used of the whole unit says whose it is. @first, which a layer
// needs from its beginning until after its last gather, has two slots, used in turn:
// the next layer's comes while this layer's is in use. @second is free before the
// next layer needs it and has one.
// CHECK-LABEL: exec.plan @gathers {
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "norm.gathered" bytes = 512
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "second.gathered" bytes = 1024
// CHECK-NEXT:   %[[V2:.+]] = exec.alloc "first.gathered" bytes = 1024
// CHECK-NEXT:   %[[V3:.+]] = exec.alloc "carry" bytes = 2048
// CHECK-NEXT:   %[[V4:.+]] = exec.slice "x" of @step[0] bytes = 1024
// CHECK-NEXT:   %[[V5:.+]] = exec.subslice %[[V3]][0] bytes = 1024
// CHECK-NEXT:   exec.copy %[[V4]] to %[[V5]] bytes = <add = 1024, cap = 1024> stream = 0
// CHECK-NEXT:   exec.loop count = <add = 3, cap = 3> {
// CHECK-NEXT:     %[[V6:.+]] = exec.subslice %[[V3]][0] bytes = 1024 {level = 1 : i64, table = array<i64: 1024, 0, 1024>}
// CHECK-NEXT:     %[[V7:.+]] = exec.alloc "{{[a-z_]+}}" bytes = 1024
// CHECK-NEXT:     %[[V8:.+]] = exec.alloc "{{[a-z_]+}}" bytes = 1024
// CHECK-NEXT:     %[[V9:.+]] = exec.subslice %[[V3]][0] bytes = 1024 {level = 1 : i64, table = array<i64: 0, 1024, 0>}
// CHECK-NEXT:     %[[V10:.+]] = exec.slice "first" of @base[0] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2>, stride = 256 : i64, unit = @first}
// CHECK-NEXT:     %[[V11:.+]] = exec.subslice %[[V2]][0] bytes = 512 {level = 1 : i64, table = array<i64: 0, 512, 0>}
// CHECK-NEXT:     exec.all_gather %[[V10]] to %[[V11]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     exec.wait 0 stream = 0
// CHECK-NEXT:     %[[V12:.+]] = exec.subslice %[[V11]][0] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2>, unit = @first}
// CHECK-NEXT:     exec.launch @k reads(%[[V9]], %[[V12]]) writes(%[[V8]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:     %[[V13:.+]] = exec.slice "second" of @base[768] bytes = 512 {level = 1 : i64, ordinals = array<i64: 0, 1, 2>, stride = 512 : i64, unit = @second}
// CHECK-NEXT:     %[[V14:.+]] = exec.subslice %[[V1]][0] bytes = 1024 {level = 1 : i64}
// CHECK-NEXT:     exec.all_gather %[[V13]] to %[[V14]] bytes = 512 {event = 1 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     exec.wait 1 stream = 0
// CHECK-NEXT:     %[[V15:.+]] = exec.subslice %[[V14]][256] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2>, unit = @second}
// CHECK-NEXT:     exec.launch @k reads(%[[V8]], %[[V15]]) writes(%[[V7]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:     exec.launch @k reads(%[[V7]], %[[V12]]) writes(%[[V6]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[V16:.+]] = exec.subslice %[[V3]][1024] bytes = 1024
// CHECK-NEXT:   %[[V17:.+]] = exec.slice "norm" of @base[2304] bytes = 256 {ordinals = array<i64: 0>, unit = @norm}
// CHECK-NEXT:   exec.all_gather %[[V17]] to %[[V0]] bytes = 256 {event = 2 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.wait 2 stream = 0
// CHECK-NEXT:   %[[V18:.+]] = exec.subslice %[[V0]][0] bytes = 256 {ordinals = array<i64: 0>, unit = @norm}
// CHECK-NEXT:   %[[V19:.+]] = exec.slice "out" of @step[1024] bytes = 1024
// CHECK-NEXT:   exec.launch @k reads(%[[V16]], %[[V18]]) writes(%[[V19]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT: }
!x = tensor<4x64xf32>
!w = tensor<64xf32>
tfm.architecture @gathers {
  tfm.param @w per_layer : !w {hf = "w.{layer}"}
  tfm.param @v per_layer : !w {hf = "v.{layer}"}
  tfm.param @n : !w {hf = "n"}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @first [@w] layers = [0, 1, 2] {bytes = 512 : i64, parts = [#fsdp.part<@w, "data", offset = 0, bytes = 256>]}
  fsdp.unit @second [@v] layers = [0, 1, 2] {bytes = 1024 : i64, parts = [#fsdp.part<@v, "data", offset = 256, bytes = 256>]}
  fsdp.unit @norm [@n] {bytes = 512 : i64, parts = [#fsdp.part<@n, "data", offset = 0, bytes = 256>]}
  kern.func @k(%x: memref<?x64xf32>, %w: memref<?xf32>, %y: memref<?x64xf32>) grid(%i) {
  }
  tfm.layer @a(%x: !x) -> !x {
    %p0 = fsdp.all_gather_start @first
    %g0 = fsdp.wait %p0
    %w = fsdp.view %g0 [@w] : !w
    %e0 = kern.empty : !x
    %y = kern.call @k(%x, %w) into(%e0) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !w) into(!x)
    %p1 = fsdp.all_gather_start @second
    %g1 = fsdp.wait %p1
    %v = fsdp.view %g1 [@v] : !w
    %e1 = kern.empty : !x
    %z = kern.call @k(%y, %v) into(%e1) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !w) into(!x)
    fsdp.release %g1
    %e2 = kern.empty : !x
    %z1 = kern.call @k(%z, %w) into(%e2) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !w) into(!x)
    fsdp.release %g0
    tfm.return %z1 : !x
  }
  tfm.func @run(%x: !x {tfm.port = "x"}) {
    %y = tfm.stack(%x) kinds = [@a] {layers = array<i32: 0, 0, 0>} : !x -> !x
    %p = fsdp.all_gather_start @norm
    %g = fsdp.wait %p
    %n = fsdp.view %g [@n] : !w
    %out = kern.port "out" : !x
    %z = kern.call @k(%y, %n) into(%out) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !w) into(!x)
    fsdp.release %g
    tfm.return
  }
}

// -----

// What is kept has a slot a layer, which its gather fills and the backward pass reads
// without one. A layer's whole gradient has two slots: it starts at zero and is
// reduced beside the next layer, into the range that the rank keeps; the reduction
// before is waited for first, and the last one at the end. The unit of the head has
// a gradient of its own.
// CHECK-LABEL: exec.plan @reduces {
// CHECK-LABEL: exec.func @micro_step {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "t.gradient" bytes = 1024
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "dcarry" bytes = 2048
// CHECK-NEXT:   %[[V2:.+]] = exec.subslice %[[V1]][0] bytes = 1024
// CHECK-NEXT:   %[[V3:.+]] = exec.alloc "head.gradient" bytes = 512
// CHECK-NEXT:   %[[V4:.+]] = exec.alloc "u.gathered" bytes = 1536
// CHECK-NEXT:   %[[V5:.+]] = exec.alloc "carry" bytes = 4096
// CHECK-NEXT:   %[[V6:.+]] = exec.slice "x" of @step[0] bytes = 1024
// CHECK-NEXT:   %[[V7:.+]] = exec.slice "w" of @step[1024] bytes = 256
// CHECK-NEXT:   %[[V8:.+]] = exec.subslice %[[V5]][0] bytes = 1024
// CHECK-NEXT:   exec.copy %[[V6]] to %[[V8]] bytes = <add = 1024, cap = 1024> stream = 0
// CHECK-NEXT:   exec.loop count = <add = 3, cap = 3> {
// CHECK-NEXT:     %[[V9:.+]] = exec.subslice %[[V5]][1024] bytes = 1024 {level = 1 : i64, stride = 1024 : i64}
// CHECK-NEXT:     %[[V10:.+]] = exec.subslice %[[V5]][0] bytes = 1024 {level = 1 : i64, stride = 1024 : i64}
// CHECK-NEXT:     %[[V11:.+]] = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2>, stride = 256 : i64, unit = @u}
// CHECK-NEXT:     %[[V12:.+]] = exec.subslice %[[V4]][0] bytes = 512 {level = 1 : i64, stride = 512 : i64}
// CHECK-NEXT:     exec.all_gather %[[V11]] to %[[V12]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     exec.wait 0 stream = 0
// CHECK-NEXT:     %[[V13:.+]] = exec.subslice %[[V12]][0] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2>, unit = @u}
// CHECK-NEXT:     exec.launch @f reads(%[[V10]], %[[V13]]) writes(%[[V9]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[V14:.+]] = exec.subslice %[[V5]][3072] bytes = 1024
// CHECK-NEXT:   exec.fill %[[V3]] bytes = <add = 512, cap = 512> stream = 0
// CHECK-NEXT:   %[[V15:.+]] = exec.subslice %[[V3]][0] bytes = 256
// CHECK-NEXT:   exec.launch @g reads(%[[V14]], %[[V7]]) writes(%[[V2]], %[[V15]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   %[[V16:.+]] = exec.slice "head.gradient" of @gradients[768] bytes = 256
// CHECK-NEXT:   exec.reduce_scatter %[[V3]] to %[[V16]] elements = 64 f32 {accumulate, event = 1 : i64, group = "shard", ranges = 2 : i64} stream = 2
// CHECK-NEXT:   exec.wait 1 holds(%[[V3]]) stream = 0
// CHECK-NEXT:   exec.loop count = <add = 3, cap = 3> {
// CHECK-NEXT:     %[[V9]] = exec.subslice %[[V1]][0] bytes = 1024 {level = 1 : i64, table = array<i64: 1024, 0, 1024>}
// CHECK-NEXT:     %[[V10]] = exec.subslice %[[V1]][0] bytes = 1024 {level = 1 : i64, table = array<i64: 0, 1024, 0>}
// CHECK-NEXT:     %[[V11]] = exec.subslice %[[V5]][2048] bytes = 1024 {level = 1 : i64, stride = -1024 : i64}
// CHECK-NEXT:     %[[V12]] = exec.subslice %[[V4]][1024] bytes = 512 {level = 1 : i64, stride = -512 : i64}
// CHECK-NEXT:     %[[V13]] = exec.subslice %[[V12]][0] bytes = 256 {level = 1 : i64, ordinals = array<i64: 2, 1, 0>, unit = @u}
// CHECK-NEXT:     %[[V17:.+]] = exec.subslice %[[V0]][0] bytes = 512 {level = 1 : i64, table = array<i64: 0, 512, 0>}
// CHECK-NEXT:     exec.fill %[[V17]] bytes = <add = 512, cap = 512> stream = 0
// CHECK-NEXT:     %[[V18:.+]] = exec.subslice %[[V17]][0] bytes = 256 {level = 1 : i64}
// CHECK-NEXT:     exec.launch @g reads(%[[V10]], %[[V13]]) writes(%[[V9]], %[[V18]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:     exec.wait 2 holds(%[[V0]]) stream = 0
// CHECK-NEXT:     %[[V19:.+]] = exec.slice "t.gradient" of @gradients[512] bytes = 256 {level = 1 : i64, stride = -256 : i64}
// CHECK-NEXT:     exec.reduce_scatter %[[V17]] to %[[V19]] elements = 64 f32 {accumulate, event = 2 : i64, group = "shard", ranges = 2 : i64} stream = 2
// CHECK-NEXT:   }
// CHECK-NEXT:   exec.wait 2 holds(%[[V0]]) stream = 0
// CHECK-NEXT:   %[[V20:.+]] = exec.subslice %[[V1]][1024] bytes = 1024
// CHECK-NEXT: }
!x = tensor<4x64xf32>
!w = tensor<64xf32>
tfm.architecture @reduces {
  tfm.param @w per_layer : !w {hf = "w.{layer}"}
  tfm.param @a per_layer : !w {hf = "a.{layer}", init = "zeros", trainable}
  tfm.param @h : !w {hf = "h", init = "zeros", trainable}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @u [@w] layers = [0, 1, 2] {bytes = 512 : i64, parts = [#fsdp.part<@w, "data", offset = 0, bytes = 256>]}
  fsdp.unit @t [@a] layers = [0, 1, 2] {trainable, bytes = 512 : i64, parts = [#fsdp.part<@a, "data", offset = 0, bytes = 256>]}
  fsdp.unit @head [@h] {trainable, bytes = 512 : i64, parts = [#fsdp.part<@h, "data", offset = 0, bytes = 256>]}
  kern.func @f(%x: memref<?x64xf32>, %w: memref<?xf32>, %y: memref<?x64xf32>) grid(%i) {
  }
  kern.func @g(%dy: memref<?x64xf32>, %w: memref<?xf32>, %dx: memref<?x64xf32>, %da: memref<?xf32>) grid(%i) {
  }
  tfm.layer @forward(%x: !x) -> (!x, !x) {
    %p = fsdp.all_gather_start @u
    %g = fsdp.wait %p
    %w = fsdp.view %g [@w] : !w
    %e = kern.empty : !x
    %y = kern.call @f(%x, %w) into(%e) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !w) into(!x)
    fsdp.keep %g
    tfm.return %y, %x : !x, !x
  }
  tfm.layer @backward(%dy: !x, %x: !x) -> !x {
    %g = fsdp.kept @u
    %w = fsdp.view %g [@w] : !w
    fsdp.gradient_start @t
    %e = kern.empty : !x
    %d = fsdp.gradient [@a] : !w
    %y:2 = kern.call @g(%dy, %w) into(%e, %d) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !w) into(!x, !w)
    fsdp.reduce_scatter_start @t
    fsdp.release %g
    tfm.return %y#0 : !x
  }
  tfm.func @micro_step(%x: !x {tfm.port = "x"}, %w: !w {tfm.port = "w"}) {
    %y, %s = tfm.stack(%x) kinds = [@forward] {layers = array<i32: 0, 0, 0>} : !x -> !x, !tfm.saved
    fsdp.gradient_start @head
    %e = kern.empty : !x
    %d = fsdp.gradient [@h] : !w
    %z:2 = kern.call @g(%y, %w) into(%e, %d) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (!x, !w) into(!x, !w)
    fsdp.reduce_scatter_start @head
    %dx = tfm.stack_grad(%z#0) saved(%s) kinds = [@backward] {layers = array<i32: 0, 0, 0>} : !x -> !x
    tfm.return
  }
}

// -----

// Gradients that are reduced once a step are summed in their whole units, in an arena
// of their own. The optimizer step reduces each layer's and sets all to zero; ranks
// that hold the same range add theirs. Sums over ranks are in place.
// CHECK-LABEL: exec.plan @sums {
// CHECK: exec.arena @gradients {bytes = 1024 : i64}
// CHECK-NEXT: exec.arena @gradient_sums {bytes = 2048 : i64}
// CHECK: exec.unit @t in @trained[0] bytes = 512 {gradient = 0 : i64, layers = array<i32: 0, 1, 2>}
// CHECK-NEXT: exec.unit @head in @trained[768] bytes = 512 {gradient = 768 : i64}
// CHECK-LABEL: exec.func @micro_step {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "y" of @step[0] bytes = 256
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "h.gradient" of @gradient_sums[1536] bytes = 256
// CHECK-NEXT:   exec.launch @g reads(%[[V0]]) writes(%[[V1]]) grid = <add = 4, cap = 4> {extents = [], scalars = []} stream = 0
// CHECK-NEXT: }
// CHECK-LABEL: exec.func @optimizer_step {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "all" bytes = 16
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "{{[a-z_]+}}" bytes = 8
// CHECK-NEXT:   exec.loop count = <add = 3, cap = 3> {
// CHECK-NEXT:     %[[V2:.+]] = exec.slice "t.gradient" of @gradients[0] bytes = 256 {level = 1 : i64, stride = 256 : i64}
// CHECK-NEXT:     %[[V3:.+]] = exec.slice "t.sum" of @gradient_sums[0] bytes = 512 {level = 1 : i64, stride = 512 : i64}
// CHECK-NEXT:     exec.reduce_scatter %[[V3]] to %[[V2]] elements = 64 f32 {event = 0 : i64, group = "shard", ranges = 2 : i64} stream = 2
// CHECK-NEXT:   }
// CHECK-NEXT:   exec.wait 0 stream = 0
// CHECK-NEXT:   %[[V4:.+]] = exec.slice "t.sum" of @gradient_sums[0] bytes = 1536
// CHECK-NEXT:   exec.fill %[[V4]] bytes = <add = 1536, cap = 1536> stream = 0
// CHECK-NEXT:   %[[V5:.+]] = exec.slice "t.gradient" of @gradients[0] bytes = 768
// CHECK-NEXT:   exec.all_reduce %[[V5]] elements = 192 f32 {event = 1 : i64, group = "replica"} stream = 2
// CHECK-NEXT:   exec.wait 1 stream = 0
// CHECK-NEXT:   %[[V6:.+]] = exec.slice "head.gradient" of @gradients[768] bytes = 256
// CHECK-NEXT:   %[[V7:.+]] = exec.slice "head.sum" of @gradient_sums[1536] bytes = 512
// CHECK-NEXT:   exec.reduce_scatter %[[V7]] to %[[V6]] elements = 64 f32 {event = 2 : i64, group = "shard", ranges = 2 : i64} stream = 2
// CHECK-NEXT:   exec.wait 2 stream = 0
// CHECK-NEXT:   %[[V8:.+]] = exec.slice "head.sum" of @gradient_sums[1536] bytes = 512
// CHECK-NEXT:   exec.fill %[[V8]] bytes = <add = 512, cap = 512> stream = 0
// CHECK-NEXT:   %[[V9:.+]] = exec.slice "head.gradient" of @gradients[768] bytes = 256
// CHECK-NEXT:   exec.all_reduce %[[V9]] elements = 64 f32 {event = 3 : i64, group = "replica"} stream = 2
// CHECK-NEXT:   exec.wait 3 stream = 0
// CHECK-NEXT:   %[[V10:.+]] = exec.slice "t.gradient" of @gradients[0] bytes = 768
// CHECK-NEXT:   exec.fill %[[V1]] bytes = <add = 8, cap = 8> stream = 0
// CHECK-NEXT:   exec.all_reduce %[[V1]] elements = 1 f64 {event = 4 : i64, group = "shard"} stream = 2
// CHECK-NEXT:   exec.wait 4 holds(%[[V1]]) stream = 0
// CHECK-NEXT:   exec.all_gather %[[V1]] to %[[V0]] bytes = 8 {event = 5 : i64, group = "shard"} stream = 2
// CHECK-NEXT:   exec.wait 5 holds(%[[V1]], %[[V0]]) stream = 0
// CHECK-NEXT:   exec.all_reduce %[[V0]] elements = 2 f64 {event = 6 : i64, group = "world"} stream = 2
// CHECK-NEXT:   exec.wait 6 holds(%[[V0]]) stream = 0
// CHECK-NEXT:   %[[V11:.+]] = exec.slice "norm" of @step[256] bytes = 16
// CHECK-NEXT:   exec.launch @n reads(%[[V0]]) writes(%[[V11]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT: }
tfm.architecture @sums {
  tfm.param @a per_layer : tensor<64xf32> {hf = "a.{layer}", init = "zeros", trainable}
  tfm.param @h : tensor<64xf32> {hf = "h", init = "zeros", trainable}
  fsdp.mesh @mesh ranks = 4 shards = 2
  fsdp.unit @t [@a] layers = [0, 1, 2] {trainable, bytes = 512 : i64, parts = [#fsdp.part<@a, "data", offset = 0, bytes = 256>]}
  fsdp.unit @head [@h] {trainable, bytes = 512 : i64, parts = [#fsdp.part<@h, "data", offset = 0, bytes = 256>]}
  kern.func @g(%dy: memref<?xf32>, %da: memref<?xf32>) grid(%i) {
  }
  kern.func @n(%x: memref<?xf64>, %y: memref<?xf64>) grid(%i) {
  }
  tfm.func @micro_step(%y: tensor<64xf32> {tfm.port = "y"}) {
    %d = fsdp.gradient [@h] : tensor<64xf32>
    %z = kern.call @g(%y) into(%d) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (tensor<64xf32>) into(tensor<64xf32>)
    tfm.return
  }
  tfm.func @optimizer_step() {
    fsdp.reduce_sums @t
    fsdp.reduce_replicas @t
    fsdp.reduce_sums @head
    fsdp.reduce_replicas @head
    %g = fsdp.flat @t "gradient" : tensor<192xf32>
    %e = kern.empty : tensor<1xf64>
    %f = kern.fill into %e : tensor<1xf64>
    %r = fsdp.all_reduce %f : tensor<1xf64>
    %a = fsdp.all_gather %r : tensor<1xf64> -> tensor<2xf64>
    %w = fsdp.all_reduce %a {world} : tensor<2xf64>
    %o = kern.port "norm" : tensor<2xf64>
    %n = kern.call @n(%w) into(%o) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} : (tensor<2xf64>) into(tensor<2xf64>)
    tfm.return
  }
}

// -----

// A unit is stored by a reduction over all ranks, in which each gets its range.
// CHECK-LABEL: exec.plan @loads {
// CHECK-LABEL: exec.func @load.begin.u {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "u.loading" of @staging[0] bytes = 512
// CHECK-NEXT:   exec.fill %[[V0]] bytes = <add = 512, cap = 512> stream = 0
// CHECK-NEXT: }
// CHECK-LABEL: exec.func @load.store.u attributes {index_count = 2 : i64} {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "u.loading" of @staging[0] bytes = 512
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "u" of @base[0] bytes = 256 {stride = 256 : i64}
// CHECK-NEXT:   exec.reduce_scatter %[[V0]] to %[[V1]] elements = 256 i8 {event = 0 : i64, group = "world", ranges = 2 : i64} stream = 2
// CHECK-NEXT:   exec.wait 0 stream = 0
// CHECK-NEXT: }
tfm.architecture @loads {
  tfm.param @w per_layer : tensor<64xf32> {hf = "w.{layer}"}
  fsdp.mesh @mesh ranks = 4 shards = 2 {deterministic}
  fsdp.unit @u [@w] layers = [0, 2] {bytes = 512 : i64, parts = [#fsdp.part<@w, "data", offset = 0, bytes = 256>]}
  tfm.func @load.begin.u() {
    %w = fsdp.whole @u : tensor<512xi8>
    %f = kern.fill into %w : tensor<512xi8>
    tfm.return
  }
  tfm.func @load.store.u() {
    fsdp.store @u
    tfm.return
  }
}
