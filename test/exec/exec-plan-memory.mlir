// RUN: %opt %s --exec-plan-memory --split-input-file | FileCheck %s

// The largest first, each at the lowest place that is free while it lives; in
// multiples of 256 bytes. Functions share the arena, which also says by name what
// is alive when most of it is in use.
// CHECK-LABEL: exec.plan @p
// CHECK: exec.arena @activations {bytes = 1792 : i64, contents = {in = 1024 : i64, t = 512 : i64, u = 256 : i64}}
// CHECK-LABEL: exec.func @straight {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "a" of @activations[1024] bytes = 500
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "b" of @activations[0] bytes = 1024
// CHECK-NEXT:   %[[V2:.+]] = exec.slice "c" of @activations[1024] bytes = 512
// CHECK-NEXT:   %[[V3:.+]] = exec.slice "d" of @activations[0] bytes = 100
// CHECK-NEXT:   exec.fill %[[V0]] bytes = <add = 500, cap = 500> stream = 0
// CHECK-NEXT:   exec.launch @k reads(%[[V0]]) writes(%[[V1]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.launch @k reads(%[[V1]]) writes(%[[V2]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   exec.launch @k reads(%[[V2]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-LABEL: exec.func @loop {
// CHECK-NEXT:   %[[V0:.+]] = exec.slice "in" of @activations[0] bytes = 1024
// CHECK-NEXT:   %[[V1:.+]] = exec.slice "out" of @activations[0] bytes = 256
// CHECK-NEXT:   exec.fill %[[V0]] bytes = <add = 1024, cap = 1024> stream = 0
// CHECK-NEXT:   exec.loop count = <add = 2, cap = 2> {
// CHECK-NEXT:     %[[V2:.+]] = exec.slice "t" of @activations[1024] bytes = 512
// CHECK-NEXT:     %[[V3:.+]] = exec.slice "u" of @activations[1536] bytes = 256
// CHECK-NEXT:     %[[V4:.+]] = exec.slice "v" of @activations[1024] bytes = 256
// CHECK-NEXT:     %[[V5:.+]] = exec.subslice %[[V0]][0] bytes = 512 {level = 1 : i64, stride = 512 : i64}
// CHECK-NEXT:     exec.launch @k reads(%[[V5]]) writes(%[[V2]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:     exec.launch @k reads(%[[V2]]) writes(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:     exec.launch @k reads(%[[V3]]) writes(%[[V4]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} stream = 0
// CHECK-NEXT:   }
// CHECK-NEXT:   exec.fill %[[V1]] bytes = <add = 256, cap = 256> stream = 0
// CHECK: exec.func @unused {
exec.plan @p {
  exec.arena @activations
  kern.func @k(%x: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }
  // a lives over 1-2, b (the largest) over 2-3, c over 3-4, d over 4 alone. c
  // takes a's place, d that of b.
  exec.func @straight {
    %a = exec.alloc "a" bytes = 500
    %b = exec.alloc "b" bytes = 1024
    %c = exec.alloc "c" bytes = 512
    %d = exec.alloc "d" bytes = 100
    exec.fill %a bytes = #kern.extent<add = 500, cap = 500> stream = 0
    exec.launch @k reads(%a) writes(%b) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    exec.launch @k reads(%b) writes(%c) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    exec.launch @k reads(%c) writes(%d) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
  }
  // What is made outside a loop and used in it lives through all of it: `in` must
  // not lie where a later iteration's `t` does. `v` takes t's place.
  exec.func @loop {
    %in = exec.alloc "in" bytes = 1024
    %out = exec.alloc "out" bytes = 256
    exec.fill %in bytes = #kern.extent<add = 1024, cap = 1024> stream = 0
    exec.loop count = #kern.extent<add = 2, cap = 2> {
      %t = exec.alloc "t" bytes = 512
      %u = exec.alloc "u" bytes = 256
      %v = exec.alloc "v" bytes = 256
      %part = exec.subslice %in[0] bytes = 512 {level = 1 : i64, stride = 512 : i64}
      exec.launch @k reads(%part) writes(%t) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
      exec.launch @k reads(%t) writes(%u) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
      exec.launch @k reads(%u) writes(%v) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    }
    exec.fill %out bytes = #kern.extent<add = 256, cap = 256> stream = 0
  }
  // What nothing uses has no place.
  exec.func @unused {
    %a = exec.alloc "a" bytes = 1048576
  }
}

// -----

// A plan without temporaries has no arena of them.
// CHECK-LABEL: exec.plan @none
// CHECK-NOT: exec.arena
exec.plan @none {
  exec.arena @activations
  exec.func @f {
  }
}

// -----

// An arena that shares the bytes of temporaries lies at their start: functions
// that use it put their own after it, others everywhere.
// CHECK-LABEL: exec.plan @shared
// CHECK: exec.arena @activations {bytes = 1280 : i64, contents = {t = 256 : i64}}
// CHECK: exec.arena @staging {bytes = 1000 : i64, shares = @activations}
// CHECK-LABEL: exec.func @load {
// CHECK-NEXT: exec.slice "t" of @activations[1024] bytes = 100
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT: exec.slice "u" of @activations[0] bytes = 512
exec.plan @shared {
  exec.arena @activations
  exec.arena @staging {bytes = 1000 : i64, shares = @activations}
  exec.func @load {
    %t = exec.alloc "t" bytes = 100
    %s = exec.slice "s" of @staging[0] bytes = 100
    exec.copy %s to %t bytes = #kern.extent<add = 100, cap = 100> stream = 0
  }
  exec.func @run {
    %u = exec.alloc "u" bytes = 512
    exec.fill %u bytes = #kern.extent<add = 512, cap = 512> stream = 0
  }
}

// -----

// What a wait holds lives until then: another stream still reads it.
// CHECK-LABEL: exec.plan @held
// CHECK: exec.arena @activations {bytes = 512 : i64, contents = {next = 256 : i64, whole = 256 : i64}}
// CHECK-LABEL: exec.func @run {
// CHECK-NEXT: exec.slice "whole" of @activations[0] bytes = 256
// CHECK-NEXT: exec.slice "next" of @activations[256] bytes = 256
// CHECK-NEXT: exec.slice "after" of @activations[0] bytes = 256
exec.plan @held {
  exec.arena @gradients {bytes = 128 : i64}
  exec.arena @activations
  exec.func @run {
    %whole = exec.alloc "whole" bytes = 256
    %next = exec.alloc "next" bytes = 256
    %after = exec.alloc "after" bytes = 256
    %range = exec.slice "range" of @gradients[0] bytes = 128
    exec.fill %whole bytes = #kern.extent<add = 256, cap = 256> stream = 0
    exec.reduce_scatter %whole to %range elements = 32 f32 {accumulate, group = "shard", ranges = 2 : i64, event = 0 : i64} stream = 2
    exec.fill %next bytes = #kern.extent<add = 256, cap = 256> stream = 0
    exec.wait 0 holds(%whole) stream = 0
    exec.fill %after bytes = #kern.extent<add = 256, cap = 256> stream = 0
  }
}
