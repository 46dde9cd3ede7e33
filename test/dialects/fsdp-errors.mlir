// RUN: %opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{has 0 ranks}}
fsdp.mesh @mesh ranks = 0

// -----

// expected-error@+1 {{has 1048577 ranks}}
fsdp.mesh @mesh ranks = 1048577

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
