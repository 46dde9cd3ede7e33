// RUN: %opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{has 0 ranks}}
fsdp.mesh @mesh ranks = 0

// -----

// expected-error@+1 {{has 1048577 ranks}}
fsdp.mesh @mesh ranks = 1048577

// -----

// expected-error@+1 {{has 4 ranks, which 3 shards do not divide}}
fsdp.mesh @mesh ranks = 4 shards = 3

// -----

// expected-error@+1 {{has 2 ranks, which 4 shards do not divide}}
fsdp.mesh @mesh ranks = 2 shards = 4

// -----

// expected-error@+1 {{has 4 ranks, which 0 shards do not divide}}
fsdp.mesh @mesh ranks = 4 shards = 0

// -----

// expected-error@+1 {{holds @q, which does not exist}}
fsdp.unit @u [@q]

// -----

tfm.param @q : tensor<4xf32> {hf = "q"}
// expected-error@+1 {{has a part of @k, which is no member}}
fsdp.unit @u [@q] {bytes = 256 : i64, parts = [#fsdp.part<@k, "data", offset = 0, bytes = 16>]}

// -----

tfm.param @q : tensor<4xf32> {hf = "q"}
tfm.param @k : tensor<4xf32> {hf = "k"}
// expected-error@+1 {{has overlapping parts at byte 8}}
fsdp.unit @u [@q, @k] {bytes = 256 : i64, parts = [
  #fsdp.part<@q, "data", offset = 0, bytes = 16>,
  #fsdp.part<@k, "data", offset = 8, bytes = 16>]}

// -----

tfm.param @q : tensor<4xf32> {hf = "q"}
// expected-error@+1 {{has parts up to byte 272 and is 256 bytes long}}
fsdp.unit @u [@q] {bytes = 256 : i64, parts = [#fsdp.part<@q, "data", offset = 256, bytes = 16>]}

// -----

tfm.param @q : tensor<4xf32> {hf = "q"}
// expected-error@+1 {{has parts up to byte 16 and is 0 bytes long}}
fsdp.unit @u [@q] {parts = [#fsdp.part<@q, "data", offset = 0, bytes = 16>]}

// -----

tfm.func @gather() {
  // expected-error@+1 {{'fsdp.all_gather_start' op names @u, which is no unit}}
  %p = fsdp.all_gather_start @u
  tfm.return
}

// -----

tfm.param @u : tensor<4xf32> {hf = "q"}
tfm.func @local() {
  // expected-error@+1 {{'fsdp.local' op names @u, which is no unit}}
  %p = fsdp.local @u
  tfm.return
}

// -----

tfm.func @reduce() {
  // expected-error@+1 {{'fsdp.reduce_scatter_start' op names @u, which is no unit}}
  fsdp.reduce_scatter_start @u
  tfm.return
}

// -----

tfm.func @kept() {
  // expected-error@+1 {{'fsdp.kept' op names @u, which is no unit}}
  %g = fsdp.kept @u
  tfm.return
}

// -----

tfm.func @gradient_start() {
  // expected-error@+1 {{'fsdp.gradient_start' op names @u, which is no unit}}
  fsdp.gradient_start @u
  tfm.return
}

// -----

tfm.func @reduce_sums() {
  // expected-error@+1 {{'fsdp.reduce_sums' op names @u, which is no unit}}
  fsdp.reduce_sums @u
  tfm.return
}

// -----

tfm.func @reduce_replicas() {
  // expected-error@+1 {{'fsdp.reduce_replicas' op names @u, which is no unit}}
  fsdp.reduce_replicas @u
  tfm.return
}

// -----

tfm.func @whole() {
  // expected-error@+1 {{'fsdp.whole' op names @u, which is no unit}}
  %w = fsdp.whole @u : tensor<256xi8>
  tfm.return
}

// -----

tfm.func @store() {
  // expected-error@+1 {{'fsdp.store' op names @u, which is no unit}}
  fsdp.store @u
  tfm.return
}

// -----

tfm.func @all_reduce(%v: tensor<1xf64>) {
  // expected-error@+1 {{'fsdp.all_reduce' op failed to verify that all of {value, result} have same type}}
  %s = "fsdp.all_reduce"(%v) : (tensor<1xf64>) -> tensor<2xf64>
  tfm.return
}

// -----

tfm.func @keep(%v: tensor<1xf64>) {
  // expected-error@+1 {{'fsdp.keep' op operand #0 must be A whole unit, until it is released, but got 'tensor<1xf64>'}}
  "fsdp.keep"(%v) : (tensor<1xf64>) -> ()
  tfm.return
}

// -----

tfm.func @flat() {
  // expected-error@+1 {{'fsdp.flat' op names @u, which is no unit}}
  %f = fsdp.flat @u "data" : tensor<4xf32>
  tfm.return
}

// -----

tfm.param @q : tensor<4xf32> {hf = "q"}
fsdp.unit @u [@q]
tfm.func @buffer() {
  // expected-error@+1 {{has no buffer "state2"}}
  %f = fsdp.flat @u "state2" : tensor<4xf32>
  tfm.return
}
