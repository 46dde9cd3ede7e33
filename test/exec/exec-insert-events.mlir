// RUN: %opt %s --split-input-file --exec-insert-events | FileCheck %s

// A collective waits for the computation before it and marks when it is done; the
// event it waits for is a new one, the one it records its own.
// CHECK-LABEL: exec.plan @one {
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "a" of @base[0] bytes = 256
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "b" of @base[512] bytes = 512
// CHECK-NEXT:   exec.launch @k reads(%[[V0]]) writes(%[[V1]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.record 5 stream = 0
// CHECK-NEXT:   exec.wait 5 stream = 1
// CHECK-NEXT:   exec.all_gather %[[V0]] to %[[V1]] bytes = 256 {event = 4 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.record 4 stream = 1
// CHECK-NEXT:   exec.launch @k reads(%[[V0]]) writes(%[[V0]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.wait 4 stream = 0
// CHECK-NEXT:   exec.launch @k reads(%[[V1]]) writes(%[[V0]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT: }
exec.plan @one {
  fsdp.mesh @mesh ranks = 2
  exec.arena @base {bytes = 1024 : i64}
  kern.func @k(%w: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }
  exec.func @run {
    %a = exec.slice "a" of @base[0] bytes = 256
    %b = exec.slice "b" of @base[512] bytes = 512
    exec.launch @k reads(%a) writes(%b) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    exec.all_gather %a to %b bytes = 256 {event = 4 : i64, group = "shard"} stream = 1
    exec.launch @k reads(%a) writes(%a) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    exec.wait 4 stream = 0
    exec.launch @k reads(%b) writes(%a) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
  }
}

// -----

// Collectives in a row start from one mark, which each stream waits for once. What
// computation waits for ends a row. Of two on one stream that are also waited for
// together (2 and 3), the last one's event is that of both; 0 and 1 are not.
// CHECK-LABEL: exec.plan @rows {
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "a" of @base[0] bytes = 256
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "b" of @base[512] bytes = 512
// CHECK-NEXT:   exec.record 4 stream = 0
// CHECK-NEXT:   exec.wait 4 stream = 1
// CHECK-NEXT:   exec.all_gather %[[V0]] to %[[V1]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.record 0 stream = 1
// CHECK-NEXT:   %[[V2:.+]] = exec.slice "c" of @base[1024] bytes = 256
// CHECK-NEXT:   %[[V3:.+]] = exec.subslice %[[V1]][0] bytes = 512
// CHECK-NEXT:   exec.all_gather %[[V2]] to %[[V3]] bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.record 1 stream = 1
// CHECK-NEXT:   exec.wait 4 stream = 2
// CHECK-NEXT:   exec.reduce_scatter %[[V1]] to %[[V0]] elements = 64 f32 {accumulate, event = 2 : i64, group = "shard", ranges = 2 : i64} stream = 2
// CHECK-NEXT:   exec.all_reduce %[[V0]] elements = 64 f32 {event = 3 : i64, group = "replica"} stream = 2
// CHECK-NEXT:   exec.record 3 stream = 2
// CHECK-NEXT:   exec.wait 0 stream = 0
// CHECK-NEXT:   exec.record 5 stream = 0
// CHECK-NEXT:   exec.wait 5 stream = 2
// CHECK-NEXT:   exec.all_reduce %[[V2]] elements = 64 f32 {event = 3 : i64, group = "replica"} stream = 2
// CHECK-NEXT:   exec.record 3 stream = 2
// CHECK-NEXT:   exec.wait 1 stream = 0
// CHECK-NEXT:   exec.wait 3 stream = 0
// CHECK-NEXT: }
exec.plan @rows {
  fsdp.mesh @mesh ranks = 2
  exec.arena @base {bytes = 4096 : i64}
  kern.func @k(%w: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }
  exec.func @run {
    %a = exec.slice "a" of @base[0] bytes = 256
    %b = exec.slice "b" of @base[512] bytes = 512
    exec.all_gather %a to %b bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
    %c = exec.slice "c" of @base[1024] bytes = 256
    %d = exec.subslice %b[0] bytes = 512
    exec.all_gather %c to %d bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
    exec.reduce_scatter %b to %a elements = 64 f32 {accumulate, event = 2 : i64, group = "shard", ranges = 2 : i64} stream = 2
    exec.all_reduce %a elements = 64 f32 {event = 3 : i64, group = "replica"} stream = 2
    exec.wait 0 stream = 0
    exec.all_reduce %c elements = 64 f32 {event = 3 : i64, group = "replica"} stream = 2
    exec.wait 1 stream = 0
    exec.wait 2 stream = 0
    exec.wait 3 stream = 0
  }
}

// -----

// A loop ends a row too: it is entered and left from more than one place. What only
// computes needs no events.
// CHECK-LABEL: exec.plan @loops {
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "a" of @base[0] bytes = 256
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "b" of @base[512] bytes = 512
// CHECK-NEXT:   exec.record 2 stream = 0
// CHECK-NEXT:   exec.wait 2 stream = 1
// CHECK-NEXT:   exec.all_gather %[[V0]] to %[[V1]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.record 0 stream = 1
// CHECK-NEXT:   exec.loop count = <add = 2, cap = 2> {
// CHECK-NEXT:     exec.record 3 stream = 0
// CHECK-NEXT:     exec.wait 3 stream = 1
// CHECK-NEXT:     exec.all_gather %[[V0]] to %[[V1]] bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
// CHECK-NEXT:     exec.record 0 stream = 1
// CHECK-NEXT:     exec.wait 0 stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   exec.record 4 stream = 0
// CHECK-NEXT:   exec.wait 4 stream = 1
// CHECK-NEXT:   exec.all_gather %[[V0]] to %[[V1]] bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
// CHECK-NEXT:   exec.record 1 stream = 1
// CHECK-NEXT:   exec.wait 1 stream = 0
// CHECK-NEXT: }
// CHECK-LABEL: exec.func @computes {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "a" of @base[0] bytes = 256
// CHECK-NEXT:   exec.fill %[[V0]] bytes = <add = 256, cap = 256> stream = 0
// CHECK-NEXT: }
exec.plan @loops {
  fsdp.mesh @mesh ranks = 2
  exec.arena @base {bytes = 4096 : i64}
  exec.func @run {
    %a = exec.slice "a" of @base[0] bytes = 256
    %b = exec.slice "b" of @base[512] bytes = 512
    exec.all_gather %a to %b bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
    exec.loop count = #kern.extent<add = 2, cap = 2> {
      exec.all_gather %a to %b bytes = 256 {event = 0 : i64, group = "shard"} stream = 1
      exec.wait 0 stream = 0
    }
    exec.all_gather %a to %b bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
    exec.wait 1 stream = 0
  }
  exec.func @computes {
    %a = exec.slice "a" of @base[0] bytes = 256
    exec.fill %a bytes = #kern.extent<add = 256, cap = 256> stream = 0
  }
}
