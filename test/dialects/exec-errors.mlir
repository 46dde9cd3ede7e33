// RUN: %opt %s --split-input-file --verify-diagnostics

exec.plan @p {
  exec.func @f {
    // expected-error@+1 {{has 0 bytes}}
    %a = exec.alloc "q" bytes = 0
  }
}

// -----

exec.plan @p {
  exec.func @f {
    // expected-error@+1 {{launches @nothing, which is no kernel}}
    exec.launch @nothing reads() writes() grid = #kern.extent<add = 1, cap = 1>
      {extents = [], scalars = []} stream = 0
  }
}

// -----

exec.plan @p {
  exec.func @f {
    // expected-error@+1 {{launches @f, which is no kernel}}
    exec.launch @f reads() writes() grid = #kern.extent<add = 1, cap = 1>
      {extents = [], scalars = []} stream = 0
  }
}

// -----

exec.plan @p {
  kern.func @k(%x: memref<?xf32>, %n: i64) grid(%i) {
  }
  exec.func @f {
    %a = exec.alloc "q" bytes = 64
    // expected-error@+1 {{gives 3 arguments to @k, which takes 2}}
    exec.launch @k reads(%a) writes(%a) grid = #kern.extent<add = 1, cap = 1>
      {extents = [], scalars = ["lr"]} stream = 0
  }
}
