// RUN: %opt %s --verify-diagnostics --exec-verify-memory

// Small correct plans, each broken in one place.
exec.plan @p {
  exec.arena @step {bytes = 256 : i64}
  exec.arena @base {bytes = 1024 : i64}
  exec.arena @activations {bytes = 1024 : i64}
  kern.func @k(%x: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  }

  exec.func @overlap {
    %x = exec.slice "x" of @step[0] bytes = 256
    %a = exec.slice "a" of @activations[0] bytes = 512
    // One byte too early.
    %b = exec.slice "b" of @activations[511] bytes = 256
    exec.fill %a bytes = #kern.extent<add = 512, cap = 512> stream = 0
    // expected-note@+1 {{the temporary 'a' was overwritten through this one while still needed}}
    %c = exec.slice "c" of @activations[256] bytes = 64
    exec.launch @k reads(%x) writes(%c) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    // expected-error@+1 {{[FSDPQ-0590]}}
    exec.launch @k reads(%a) writes(%b) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
  }

  exec.func @by_one_byte {
    %a = exec.slice "a" of @activations[0] bytes = 512
    // expected-note@+1 {{the temporary 'a' was overwritten through this one while still needed}}
    %b = exec.slice "b" of @activations[511] bytes = 256
    exec.fill %a bytes = #kern.extent<add = 512, cap = 512> stream = 0
    exec.fill %b bytes = #kern.extent<add = 256, cap = 256> stream = 0
    // expected-error@+1 {{[FSDPQ-0590]}}
    exec.launch @k reads(%a) writes(%b) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
  }

  // Correct in the first iteration alone.
  exec.func @second_iteration {
    %a = exec.slice "a" of @activations[0] bytes = 256
    exec.fill %a bytes = #kern.extent<add = 256, cap = 256> stream = 0
    exec.loop count = #kern.extent<add = 2, cap = 2> {
      // expected-note@+1 {{the temporary 'a' was overwritten through this one while still needed}}
      %t = exec.slice "t" of @activations[128] bytes = 256
      // expected-error@+1 {{[FSDPQ-0590]}}
      exec.launch @k reads(%a) writes(%t) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    }
  }

  exec.func @before_write {
    %a = exec.slice "a" of @activations[0] bytes = 256
    %b = exec.slice "b" of @activations[256] bytes = 256
    // expected-error@+1 {{[FSDPQ-0590] the temporary 'a' is read before it is written}}
    exec.copy %a to %b bytes = #kern.extent<add = 256, cap = 256> stream = 0
  }

  // Half of it was written.
  exec.func @half_written {
    %a = exec.slice "a" of @activations[0] bytes = 512
    %b = exec.slice "b" of @activations[512] bytes = 256
    %a0 = exec.subslice %a[0] bytes = 256
    exec.fill %a0 bytes = #kern.extent<add = 256, cap = 256> stream = 0
    // expected-error@+1 {{[FSDPQ-0590] the temporary 'a' is read before it is written}}
    exec.launch @k reads(%a) writes(%b) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
  }

  // A product that adds reads what it adds to.
  exec.func @sum {
    %x = exec.slice "x" of @step[0] bytes = 256
    %a = exec.slice "a" of @activations[0] bytes = 256
    // expected-error@+1 {{[FSDPQ-0590] the temporary 'a' is read before it is written}}
    exec.gemm %x, %x into %a f32 {alpha = 1.0, beta = 1.0,
      m = #kern.extent<add = 8, cap = 8>, n = #kern.extent<add = 8, cap = 8>, k = #kern.extent<add = 8, cap = 8>,
      lda = 8, ldb = 8, ldc = 8} stream = 0
  }

  exec.func @out_of_arena {
    %a = exec.slice "a" of @activations[768] bytes = 512
    // expected-error@+1 {{[FSDPQ-0590] the slice 'a' covers bytes 768 to 1280 of @activations, which has 1024}}
    exec.fill %a bytes = #kern.extent<add = 512, cap = 512> stream = 0
  }

  exec.func @below_arena {
    %a = exec.slice "a" of @activations[0] bytes = 256
    exec.fill %a bytes = #kern.extent<add = 256, cap = 256> stream = 0
    exec.loop count = #kern.extent<add = 1, cap = 1> {
      %b = exec.subslice %a[0] bytes = 256 {level = 1 : i64, table = array<i64: -256>}
      // expected-error@+1 {{[FSDPQ-0590] the slice 'a' covers bytes -256 to 0 of @activations, which has 1024}}
      exec.launch @k reads(%b) writes(%a) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    }
  }

  // The last layer's weight.
  exec.func @stride {
    %x = exec.slice "x" of @step[0] bytes = 256
    exec.loop count = #kern.extent<add = 3, cap = 3> {
      %w = exec.slice "w" of @base[0] bytes = 512 {level = 1 : i64, stride = 512 : i64}
      // expected-error@+1 {{[FSDPQ-0590] the slice 'w' covers bytes 1024 to 1536 of @base, which has 1024}}
      exec.launch @k reads(%w) writes(%x) grid = #kern.extent<add = 1, cap = 1> {extents = [], scalars = []} stream = 0
    }
  }

  exec.func @no_arena {
    %a = exec.slice "a" of @missing[0] bytes = 4
    // expected-error@+1 {{[FSDPQ-0590] the slice 'a' covers bytes 0 to 4 of @missing, which has 0}}
    exec.fill %a bytes = #kern.extent<add = 4, cap = 4> stream = 0
  }

  // The last index of a function.
  exec.func @load attributes {index_count = 3 : i64} {
    %w = exec.slice "w" of @base[0] bytes = 512 {stride = 512 : i64}
    // expected-error@+1 {{[FSDPQ-0590] the slice 'w' covers bytes 1024 to 1536 of @base, which has 1024}}
    exec.fill %w bytes = #kern.extent<add = 512, cap = 512> stream = 0
  }

  exec.func @not_placed {
    %a = exec.alloc "a" bytes = 256
    // expected-error@+1 {{[FSDPQ-0590] a temporary has no address yet; run exec-plan-memory}}
    exec.fill %a bytes = #kern.extent<add = 256, cap = 256> stream = 0
  }

  exec.func @short_table {
    exec.loop count = #kern.extent<add = 2, cap = 2> {
      %a = exec.slice "a" of @activations[0] bytes = 256 {level = 1 : i64, table = array<i64: 0>}
      // expected-error@+1 {{[FSDPQ-0590] a slice depends on index 1, which is not there or beyond its table}}
      exec.fill %a bytes = #kern.extent<add = 256, cap = 256> stream = 0
    }
  }

  exec.func @no_loop {
    %a = exec.slice "a" of @activations[0] bytes = 256 {level = 1 : i64, stride = 256 : i64}
    // expected-error@+1 {{[FSDPQ-0590] a slice depends on index 1, which is not there or beyond its table}}
    exec.fill %a bytes = #kern.extent<add = 256, cap = 256> stream = 0
  }

  exec.func @two_indices {
    exec.loop count = #kern.extent<add = 1, cap = 1> {
      %a = exec.slice "a" of @activations[0] bytes = 256 {level = 1 : i64, stride = 256 : i64}
      %b = exec.subslice %a[0] bytes = 128 {level = 1 : i64, stride = 128 : i64}
      // expected-error@+1 {{[FSDPQ-0590] a slice and a part of it both depend on an index}}
      exec.fill %b bytes = #kern.extent<add = 128, cap = 128> stream = 0
    }
  }
}
