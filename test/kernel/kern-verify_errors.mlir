// RUN: %opt %s --verify-diagnostics --kern-verify

tfm.architecture @m {
  // expected-error@+1 {{[FSDPQ-0490] after the kernel phase: @unused is never called}}
  kern.func @unused() grid(%i) {
  }
  tfm.layer @k(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
    // expected-error@+1 {{'tfm.silu' op [FSDPQ-0490] after the kernel phase: the operation was not outlined}}
    %y = tfm.silu %x : tensor<4x4xf32>
    tfm.return %y : tensor<4x4xf32>
  }
  tfm.func @f(%x: tensor<4x4xf32>) {
    %y = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0>} : tensor<4x4xf32> -> tensor<4x4xf32>
    // expected-error@+1 {{'tfm.linear' op [FSDPQ-0490] after the kernel phase: the operation was not outlined}}
    %z = tfm.linear %y, %x : tensor<4x4xf32>, tensor<4x4xf32>
    tfm.return
  }
}
