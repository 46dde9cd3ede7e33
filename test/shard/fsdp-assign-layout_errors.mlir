// RUN: %opt %s --verify-diagnostics --split-input-file --fsdp-assign-layout

tfm.architecture @m {
  tfm.param @q : tensor<10x3xf32> {hf = "q"}
  tfm.param @k : tensor<5x3xf32> {hf = "k"}
  tfm.param @n : tensor<3xf32> {hf = "n"}
  fsdp.mesh @mesh ranks = 1
  // expected-error@+1 {{[FSDPQ-0310] @k is used together with @q but does not follow it in the unit}}
  fsdp.unit @u [@q, @n, @k]
  tfm.func @f() {
    %0 = tfm.use [@q, @k] : tensor<15x3xf32>
    tfm.return
  }
}

// -----

// In another unit altogether.
tfm.architecture @m {
  tfm.param @q : tensor<10x3xf32> {hf = "q"}
  tfm.param @k : tensor<5x3xf32> {hf = "k"}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @u [@q]
  // expected-error@+1 {{[FSDPQ-0310] @k is used together with @q but does not follow it in the unit}}
  fsdp.unit @v [@k]
  tfm.func @f() {
    %0 = tfm.use [@q, @k] : tensor<15x3xf32>
    tfm.return
  }
}
