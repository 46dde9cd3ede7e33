// RUN: %opt %s --split-input-file --exec-schedule-overlap --remarks-filter='fsdpq.*' --remark-format=emitRemark 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// With depth = 0 gathers start where they are needed.
// RUN: %opt %s --split-input-file -o %t.unchanged
// RUN: %opt %s --split-input-file --exec-schedule-overlap=depth=0 | diff - %t.unchanged

// What the schedule needs of the plan holds: streams are ordered, and every launch
// finds the layer's own parameters.
// RUN: %opt %s --split-input-file --exec-schedule-overlap --exec-insert-events --exec-plan-memory --exec-verify-races --exec-verify-memory -o /dev/null

// REMARK-COUNT-3: remark: [Missed] overlap | Category:fsdpq | Remark="gathers of this loop do not start ahead: its iterations differ"
// REMARK-NOT: remark

// The gather of iteration i + 1 starts in iteration i, after the wait for that of i;
// the first one's before the loop (and not before what the loop needs otherwise), and
// the last iteration, which starts none, after it. Slices move with the iteration:
// strides by their step, tables and ordinals by an entry; before and after the loop
// they are those of one iteration.
// CHECK-LABEL: exec.plan @rotated {
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "u.gathered" bytes = 1024
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "y" bytes = 256
// CHECK-NEXT:   exec.launch @before reads() writes(%[[V1]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   %[[V2:.+]] = exec.slice "u" of @base[0] bytes = 256 {ordinals = array<i64: 0>, unit = @u}
// CHECK-NEXT:   %[[V3:.+]] = exec.subslice %[[V0]][0] bytes = 512
// CHECK-NEXT:   exec.all_gather %[[V2]] to %[[V3]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.loop count = <add = 3, cap = 3> {
// CHECK-NEXT:     %[[V4:.+]] = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2, 3>, stride = 256 : i64, unit = @u}
// CHECK-NEXT:     %[[V5:.+]] = exec.subslice %[[V0]][0] bytes = 512 {level = 1 : i64, table = array<i64: 0, 512, 0, 512>}
// CHECK-NEXT:     exec.wait 0 stream = 0
// CHECK-NEXT:     %[[V6:.+]] = exec.slice "u" of @base[256] bytes = 256 {level = 1 : i64, ordinals = array<i64: 1, 2, 3>, stride = 256 : i64, unit = @u}
// CHECK-NEXT:     %[[V7:.+]] = exec.subslice %[[V0]][0] bytes = 512 {level = 1 : i64, table = array<i64: 512, 0, 512>}
// CHECK-NEXT:     exec.all_gather %[[V6]] to %[[V7]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     %[[V8:.+]] = exec.subslice %[[V5]][64] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2, 3>, unit = @u}
// CHECK-NEXT:     exec.launch @layer reads(%[[V8]]) writes(%[[V1]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[V9:.+]] = exec.slice "u" of @base[768] bytes = 256 {ordinals = array<i64: 3>, unit = @u}
// CHECK-NEXT:   %[[V10:.+]] = exec.subslice %[[V0]][512] bytes = 512
// CHECK-NEXT:   exec.wait 0 stream = 0
// CHECK-NEXT:   %[[V11:.+]] = exec.subslice %[[V10]][64] bytes = 256 {ordinals = array<i64: 3>, unit = @u}
// CHECK-NEXT:   exec.launch @layer reads(%[[V11]]) writes(%[[V1]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT: }
exec.plan @rotated {
  fsdp.mesh @mesh ranks = 2
  exec.arena @base {bytes = 2048 : i64}
  exec.arena @activations
  exec.unit @u in @base[0] bytes = 512 {layers = array<i32: 0, 1, 2, 3>}
  kern.func @layer(%w: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }
  kern.func @before(%y: memref<?xf32>) grid(%i) {
  }
  exec.func @run {
    %slots = exec.alloc "u.gathered" bytes = 1024
    %y = exec.alloc "y" bytes = 256
    exec.launch @before reads() writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    exec.loop count = #kern.extent<add = 4, cap = 4> {
      %shard = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, stride = 256 : i64, unit = @u, ordinals = array<i64: 0, 1, 2, 3>}
      %slot = exec.subslice %slots[0] bytes = 512 {level = 1 : i64, table = array<i64: 0, 512, 0, 512>}
      exec.all_gather %shard to %slot bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
      exec.wait 0 stream = 0
      %w = exec.subslice %slot[64] bytes = 256 {level = 1 : i64, unit = @u, ordinals = array<i64: 0, 1, 2, 3>}
      exec.launch @layer reads(%w) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    }
  }
}

// -----

// Of two iterations none is left in a loop.
// CHECK-LABEL: exec.plan @two {
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "u.gathered" bytes = 1024
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "y" bytes = 256
// CHECK-NEXT:   %[[V2:.+]] = exec.slice "u" of @base[768] bytes = 256 {ordinals = array<i64: 1>, unit = @u}
// CHECK-NEXT:   %[[V3:.+]] = exec.subslice %[[V0]][0] bytes = 512
// CHECK-NEXT:   exec.all_gather %[[V2]] to %[[V3]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   %[[V4:.+]] = exec.slice "u" of @base[768] bytes = 256 {ordinals = array<i64: 1>, unit = @u}
// CHECK-NEXT:   %[[V5:.+]] = exec.subslice %[[V0]][0] bytes = 512
// CHECK-NEXT:   exec.wait 0 stream = 0
// CHECK-NEXT:   %[[V6:.+]] = exec.slice "u" of @base[512] bytes = 256 {ordinals = array<i64: 0>, unit = @u}
// CHECK-NEXT:   %[[V7:.+]] = exec.subslice %[[V0]][512] bytes = 512
// CHECK-NEXT:   exec.all_gather %[[V6]] to %[[V7]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   %[[V8:.+]] = exec.subslice %[[V5]][64] bytes = 256 {ordinals = array<i64: 1>, unit = @u}
// CHECK-NEXT:   exec.launch @layer reads(%[[V8]]) writes(%[[V1]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   %[[V9:.+]] = exec.slice "u" of @base[512] bytes = 256 {ordinals = array<i64: 0>, unit = @u}
// CHECK-NEXT:   %[[V10:.+]] = exec.subslice %[[V0]][512] bytes = 512
// CHECK-NEXT:   exec.wait 0 stream = 0
// CHECK-NEXT:   %[[V11:.+]] = exec.subslice %[[V10]][64] bytes = 256 {ordinals = array<i64: 0>, unit = @u}
// CHECK-NEXT:   exec.launch @layer reads(%[[V11]]) writes(%[[V1]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT: }
exec.plan @two {
  fsdp.mesh @mesh ranks = 2
  exec.arena @base {bytes = 1024 : i64}
  exec.arena @activations
  exec.unit @u in @base[512] bytes = 512 {layers = array<i32: 0, 1>}
  kern.func @layer(%w: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }
  exec.func @run {
    %slots = exec.alloc "u.gathered" bytes = 1024
    %y = exec.alloc "y" bytes = 256
    exec.loop count = #kern.extent<add = 2, cap = 2> {
      %shard = exec.slice "u" of @base[768] bytes = 256 {level = 1 : i64, stride = -256 : i64, unit = @u, ordinals = array<i64: 1, 0>}
      %slot = exec.subslice %slots[0] bytes = 512 {level = 1 : i64, stride = 512 : i64}
      exec.all_gather %shard to %slot bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
      exec.wait 0 stream = 0
      %w = exec.subslice %slot[64] bytes = 256 {level = 1 : i64, unit = @u, ordinals = array<i64: 1, 0>}
      exec.launch @layer reads(%w) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    }
  }
}

// -----

// Gathers that are needed at one place are a group. In a body of two, the second
// starts after the waits for the first, and the next iteration's first after the
// wait for the second.
// CHECK-LABEL: exec.plan @groups {
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "u.gathered" bytes = 512
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "v.gathered" bytes = 512
// CHECK-NEXT:   %[[V2:.+]] = exec.alloc "t.gathered" bytes = 1024
// CHECK-NEXT:   %[[V3:.+]] = exec.alloc "y" bytes = 256
// CHECK-NEXT:   %[[V4:.+]] = exec.slice "u" of @base[0] bytes = 256 {ordinals = array<i64: 0>, unit = @u}
// CHECK-NEXT:   exec.all_gather %[[V4]] to %[[V0]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   %[[V5:.+]] = exec.slice "t" of @base[1536] bytes = 256 {ordinals = array<i64: 0>, unit = @t}
// CHECK-NEXT:   %[[V6:.+]] = exec.subslice %[[V2]][0] bytes = 512
// CHECK-NEXT:   exec.all_gather %[[V5]] to %[[V6]] bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.loop count = <add = 2, cap = 2> {
// CHECK-NEXT:     %[[V7:.+]] = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2>, stride = 256 : i64, unit = @u}
// CHECK-NEXT:     %[[V8:.+]] = exec.slice "t" of @base[1536] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2>, stride = 256 : i64, unit = @t}
// CHECK-NEXT:     %[[V9:.+]] = exec.subslice %[[V2]][0] bytes = 512 {level = 1 : i64, table = array<i64: 0, 512, 0>}
// CHECK-NEXT:     exec.wait 0 stream = 0
// CHECK-NEXT:     exec.wait 1 stream = 0
// CHECK-NEXT:     %[[V10:.+]] = exec.slice "v" of @base[768] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2>, stride = 256 : i64, unit = @v}
// CHECK-NEXT:     exec.all_gather %[[V10]] to %[[V1]] bytes = 256 {event = 2 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     exec.launch @layer reads(%[[V0]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:     exec.wait 2 stream = 0
// CHECK-NEXT:     %[[V11:.+]] = exec.slice "u" of @base[256] bytes = 256 {level = 1 : i64, ordinals = array<i64: 1, 2>, stride = 256 : i64, unit = @u}
// CHECK-NEXT:     exec.all_gather %[[V11]] to %[[V0]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     %[[V12:.+]] = exec.slice "t" of @base[1792] bytes = 256 {level = 1 : i64, ordinals = array<i64: 1, 2>, stride = 256 : i64, unit = @t}
// CHECK-NEXT:     %[[V13:.+]] = exec.subslice %[[V2]][0] bytes = 512 {level = 1 : i64, table = array<i64: 512, 0>}
// CHECK-NEXT:     exec.all_gather %[[V12]] to %[[V13]] bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     exec.launch @layer reads(%[[V1]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[V14:.+]] = exec.slice "u" of @base[512] bytes = 256 {ordinals = array<i64: 2>, unit = @u}
// CHECK-NEXT:   %[[V15:.+]] = exec.slice "t" of @base[2048] bytes = 256 {ordinals = array<i64: 2>, unit = @t}
// CHECK-NEXT:   %[[V16:.+]] = exec.subslice %[[V2]][0] bytes = 512
// CHECK-NEXT:   exec.wait 0 stream = 0
// CHECK-NEXT:   exec.wait 1 stream = 0
// CHECK-NEXT:   %[[V17:.+]] = exec.slice "v" of @base[1280] bytes = 256 {ordinals = array<i64: 2>, unit = @v}
// CHECK-NEXT:   exec.all_gather %[[V17]] to %[[V1]] bytes = 256 {event = 2 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.launch @layer reads(%[[V0]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.wait 2 stream = 0
// CHECK-NEXT:   exec.launch @layer reads(%[[V1]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT: }
exec.plan @groups {
  fsdp.mesh @mesh ranks = 2
  exec.arena @base {bytes = 3072 : i64}
  exec.arena @activations
  exec.unit @u in @base[0] bytes = 512 {layers = array<i32: 0, 1, 2>}
  exec.unit @v in @base[768] bytes = 512 {layers = array<i32: 0, 1, 2>}
  exec.unit @t in @base[1536] bytes = 512 {layers = array<i32: 0, 1, 2>}
  kern.func @layer(%w: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }
  exec.func @run {
    %us = exec.alloc "u.gathered" bytes = 512
    %vs = exec.alloc "v.gathered" bytes = 512
    %ts = exec.alloc "t.gathered" bytes = 1024
    %y = exec.alloc "y" bytes = 256
    exec.loop count = #kern.extent<add = 3, cap = 3> {
      %u = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, stride = 256 : i64, unit = @u, ordinals = array<i64: 0, 1, 2>}
      exec.all_gather %u to %us bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
      %t = exec.slice "t" of @base[1536] bytes = 256 {level = 1 : i64, stride = 256 : i64, unit = @t, ordinals = array<i64: 0, 1, 2>}
      %slot = exec.subslice %ts[0] bytes = 512 {level = 1 : i64, table = array<i64: 0, 512, 0>}
      exec.all_gather %t to %slot bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
      exec.wait 0 stream = 0
      exec.wait 1 stream = 0
      exec.launch @layer reads(%us) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
      %v = exec.slice "v" of @base[768] bytes = 256 {level = 1 : i64, stride = 256 : i64, unit = @v, ordinals = array<i64: 0, 1, 2>}
      exec.all_gather %v to %vs bytes = 256 {event = 2 : i64, group = "shard"} stream = 1
      exec.wait 2 stream = 0
      exec.launch @layer reads(%vs) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    }
  }
}

// -----

// From before the loop its first gather moves up to the wait for the one before; the
// one behind the loop starts in its last iteration. Neither goes further: it would
// start beside the one before it.
// CHECK-LABEL: exec.plan @around {
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "head.gathered" bytes = 512
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "head.gathered" bytes = 512
// CHECK-NEXT:   %[[V2:.+]] = exec.alloc "u.gathered" bytes = 1024
// CHECK-NEXT:   %[[V3:.+]] = exec.alloc "y" bytes = 256
// CHECK-NEXT:   %[[V4:.+]] = exec.slice "head" of @base[1024] bytes = 256 {ordinals = array<i64: 0>, unit = @head}
// CHECK-NEXT:   exec.all_gather %[[V4]] to %[[V0]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.wait 0 stream = 0
// CHECK-NEXT:   %[[V5:.+]] = exec.slice "u" of @base[0] bytes = 256 {ordinals = array<i64: 0>, unit = @u}
// CHECK-NEXT:   %[[V6:.+]] = exec.subslice %[[V2]][0] bytes = 512
// CHECK-NEXT:   exec.all_gather %[[V5]] to %[[V6]] bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.launch @layer reads(%[[V0]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.loop count = <add = 2, cap = 2> {
// CHECK-NEXT:     %[[V7:.+]] = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, ordinals = array<i64: 0, 1, 2>, stride = 256 : i64, unit = @u}
// CHECK-NEXT:     %[[V8:.+]] = exec.subslice %[[V2]][0] bytes = 512 {level = 1 : i64, table = array<i64: 0, 512, 0>}
// CHECK-NEXT:     exec.wait 1 stream = 0
// CHECK-NEXT:     %[[V9:.+]] = exec.slice "u" of @base[256] bytes = 256 {level = 1 : i64, ordinals = array<i64: 1, 2>, stride = 256 : i64, unit = @u}
// CHECK-NEXT:     %[[V10:.+]] = exec.subslice %[[V2]][0] bytes = 512 {level = 1 : i64, table = array<i64: 512, 0>}
// CHECK-NEXT:     exec.all_gather %[[V9]] to %[[V10]] bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     exec.launch @layer reads(%[[V8]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[V11:.+]] = exec.slice "u" of @base[512] bytes = 256 {ordinals = array<i64: 2>, unit = @u}
// CHECK-NEXT:   %[[V12:.+]] = exec.subslice %[[V2]][0] bytes = 512
// CHECK-NEXT:   exec.wait 1 stream = 0
// CHECK-NEXT:   %[[V13:.+]] = exec.slice "head" of @base[1024] bytes = 256 {ordinals = array<i64: 0>, unit = @head}
// CHECK-NEXT:   exec.all_gather %[[V13]] to %[[V1]] bytes = 256 {event = 2 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.launch @layer reads(%[[V12]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.launch @layer reads(%[[V3]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.wait 2 stream = 0
// CHECK-NEXT:   exec.launch @layer reads(%[[V1]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT: }
exec.plan @around {
  fsdp.mesh @mesh ranks = 2
  exec.arena @base {bytes = 2048 : i64}
  exec.arena @activations
  exec.unit @head in @base[1024] bytes = 512
  exec.unit @u in @base[0] bytes = 512 {layers = array<i32: 0, 1, 2>}
  kern.func @layer(%w: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }
  exec.func @run {
    %whole = exec.alloc "head.gathered" bytes = 512
    %again = exec.alloc "head.gathered" bytes = 512
    %slots = exec.alloc "u.gathered" bytes = 1024
    %y = exec.alloc "y" bytes = 256
    %r = exec.slice "head" of @base[1024] bytes = 256 {unit = @head, ordinals = array<i64: 0>}
    exec.all_gather %r to %whole bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
    exec.wait 0 stream = 0
    exec.launch @layer reads(%whole) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    exec.loop count = #kern.extent<add = 3, cap = 3> {
      %shard = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, stride = 256 : i64, unit = @u, ordinals = array<i64: 0, 1, 2>}
      %slot = exec.subslice %slots[0] bytes = 512 {level = 1 : i64, table = array<i64: 0, 512, 0>}
      exec.all_gather %shard to %slot bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
      exec.wait 1 stream = 0
      exec.launch @layer reads(%slot) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    }
    exec.launch @layer reads(%y) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    %r2 = exec.slice "head" of @base[1024] bytes = 256 {unit = @head, ordinals = array<i64: 0>}
    exec.all_gather %r2 to %again bytes = 256 {event = 2 : i64, group = "shard"} stream = 1
    exec.wait 2 stream = 0
    exec.launch @layer reads(%again) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
  }
}

// -----

// A loop whose iterations differ in more than slices is left as it is, and said to
// be: one with extents that refer to its index, with a loop inside, or with a count
// that is known at run time alone.
// CHECK-LABEL: exec.plan @stays {
// CHECK-LABEL: exec.func @chunks {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "u.gathered" bytes = 1024
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "y" bytes = 1024
// CHECK-NEXT:   exec.loop count = <add = 3, cap = 3> {
// CHECK-NEXT:     %[[V2:.+]] = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, stride = 256 : i64}
// CHECK-NEXT:     exec.all_gather %[[V2]] to %[[V0]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     exec.wait 0 stream = 0
// CHECK-NEXT:     exec.launch @layer reads(%[[V0]]) writes(%[[V1]]) grid = <scalar = "labels", index_mul = -128, cap = 128> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-LABEL: exec.func @nested {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "u.gathered" bytes = 1024
// CHECK-NEXT:   %[[V1:.+]] = exec.alloc "y" bytes = 1024
// CHECK-NEXT:   exec.loop count = <add = 3, cap = 3> {
// CHECK-NEXT:     %[[V2:.+]] = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, stride = 256 : i64}
// CHECK-NEXT:     exec.all_gather %[[V2]] to %[[V0]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     exec.wait 0 stream = 0
// CHECK-NEXT:     exec.loop count = <add = 2, cap = 2> {
// CHECK-NEXT:       exec.launch @layer reads(%[[V0]]) writes(%[[V1]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-LABEL: exec.func @counted {
// CHECK-NEXT:   %[[V0:.+]] = exec.alloc "u.gathered" bytes = 1024
// CHECK-NEXT:   exec.loop count = <scalar = "labels", cap = 3> {
// CHECK-NEXT:     %[[V1:.+]] = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, stride = 256 : i64}
// CHECK-NEXT:     exec.all_gather %[[V1]] to %[[V0]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     exec.wait 0 stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT: }
exec.plan @stays {
  fsdp.mesh @mesh ranks = 2
  exec.arena @base {bytes = 2048 : i64}
  exec.arena @activations
  exec.unit @u in @base[0] bytes = 512 {layers = array<i32: 0, 1, 2>}
  kern.func @layer(%w: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }
  exec.func @chunks {
    %slots = exec.alloc "u.gathered" bytes = 1024
    %y = exec.alloc "y" bytes = 1024
    exec.loop count = #kern.extent<add = 3, cap = 3> {
      %shard = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, stride = 256 : i64}
      exec.all_gather %shard to %slots bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
      exec.wait 0 stream = 0
      exec.launch @layer reads(%slots) writes(%y) grid = #kern.extent<scalar = "labels", index_mul = -128, cap = 128> {extents = [], scalars = []} stream = 0
    }
  }
  exec.func @nested {
    %slots = exec.alloc "u.gathered" bytes = 1024
    %y = exec.alloc "y" bytes = 1024
    exec.loop count = #kern.extent<add = 3, cap = 3> {
      %shard = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, stride = 256 : i64}
      exec.all_gather %shard to %slots bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
      exec.wait 0 stream = 0
      exec.loop count = #kern.extent<add = 2, cap = 2> {
        exec.launch @layer reads(%slots) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
      }
    }
  }
  exec.func @counted {
    %slots = exec.alloc "u.gathered" bytes = 1024
    exec.loop count = #kern.extent<scalar = "labels", cap = 3> {
      %shard = exec.slice "u" of @base[0] bytes = 256 {level = 1 : i64, stride = 256 : i64}
      exec.all_gather %shard to %slots bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
      exec.wait 0 stream = 0
    }
  }
}
