// RUN: %opt %s --exec-verify-races -o %t.after
// RUN: %opt %s | diff - %t.after

// Three layers, gathered one ahead into two slots in turn, and a reduction: streams
// are ordered, each launch finds its layer's parameters, and all is waited for. The
// IR is not changed. exec-verify-races_errors.test breaks it.

exec.plan @p {
  fsdp.mesh @mesh ranks = 2
  exec.arena @base {bytes = 1024 : i64}
  exec.arena @gradients {bytes = 256 : i64}
  exec.arena @activations {bytes = 2048 : i64}
  exec.unit @u in @base[0] bytes = 512 {layers = array<i32: 0, 1, 2>}
  kern.func @k(%w: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }
  exec.func @run {
    %slots = exec.slice "slots" of @activations[0] bytes = 1024
    %y = exec.slice "y" of @activations[1024] bytes = 512
    %range = exec.slice "range" of @gradients[0] bytes = 256
    %shard0 = exec.slice "u" of @base[0] bytes = 256 {unit = @u, ordinals = array<i64: 0>}
    %slot0 = exec.subslice %slots[0] bytes = 512
    exec.record 0 stream = 0
    exec.wait 0 stream = 1
    exec.all_gather %shard0 to %slot0 bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
    exec.record 1 stream = 1
    exec.loop count = #kern.extent<add = 2, cap = 2> {
      %w = exec.subslice %slots[0] bytes = 512 {level = 1 : i64, stride = 512 : i64, unit = @u, ordinals = array<i64: 0, 1>}
      %shard = exec.slice "u" of @base[256] bytes = 256 {level = 1 : i64, stride = 256 : i64, unit = @u, ordinals = array<i64: 1, 2>}
      %next = exec.subslice %slots[512] bytes = 512 {level = 1 : i64, stride = -512 : i64}
      exec.wait 1 stream = 0 // the gather of this layer
      exec.record 0 stream = 0
      exec.wait 0 stream = 1 // what computed with the slot
      exec.all_gather %shard to %next bytes = 256 {event = 1 : i64, group = "shard"} stream = 1
      exec.record 1 stream = 1
      exec.launch @k reads(%w) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    }
    %last = exec.subslice %slots[0] bytes = 512 {unit = @u, ordinals = array<i64: 2>}
    exec.wait 1 stream = 0
    exec.launch @k reads(%last) writes(%y) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    exec.record 2 stream = 0
    exec.wait 2 stream = 2
    exec.reduce_scatter %y to %range elements = 64 f32 {accumulate, event = 3 : i64, group = "shard", ranges = 2 : i64} stream = 2
    exec.record 3 stream = 2
    exec.wait 3 holds(%y) stream = 0
  }
}
