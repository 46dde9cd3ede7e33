// RUN: %opt %s --verify-diagnostics --split-input-file --fsdp-insert-collectives
// RUN: not %opt %s --split-input-file --fsdp-insert-collectives=reduce=never 2>&1 | FileCheck %s
// CHECK: [FSDPQ-0321] reduce = never: micro_step or step is needed

tfm.architecture @m {
  tfm.param @q : tensor<4x4xf32> {hf = "q"}
  tfm.param @k : tensor<4x4xf32> {hf = "k"}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @u [@q]
  fsdp.unit @v [@k]
  tfm.func @f() {
    // expected-error@+1 {{[FSDPQ-0320] @k is not in one unit with what it is used with}}
    %0 = tfm.use [@q, @k] : tensor<8x4xf32>
    tfm.return
  }
}

// -----

tfm.architecture @m {
  tfm.param @q : tensor<4x4xf32> {hf = "q"}
  fsdp.mesh @mesh ranks = 2
  tfm.func @f(%g: tensor<4x4xf32>) {
    // expected-error@+1 {{[FSDPQ-0320] @q is not in one unit with what it is used with}}
    tfm.accumulate [@q], %g : tensor<4x4xf32>
    tfm.return
  }
}
