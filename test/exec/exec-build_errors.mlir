// RUN: %opt %s --verify-diagnostics --split-input-file --exec-build

tfm.architecture @m {
  // expected-error@+1 {{[FSDPQ-0501] argument 0 of @f is no array of the host}}
  tfm.func @f(%x: tensor<4xf32>) {
    tfm.return
  }
}

// -----

!q = tensor<64x64x!qt.nf4<block = 64, scale = f32>>
tfm.architecture @m {
  tfm.param @q : !q {hf = "q"}
  tfm.param @k : !q {hf = "k"}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @u [@q, @k] {bytes = 6144 : i64, parts = []}
  tfm.func @f() {
    %g = fsdp.local @u
    // expected-error@+1 {{[FSDPQ-0502] quantised parameters that are used as one must be dequantised one by one}}
    %v = fsdp.view %g [@q, @k] : tensor<128x64x!qt.nf4<block = 64, scale = f32>>
    tfm.return
  }
}

// -----

tfm.architecture @m {
  tfm.func @f(%x: tensor<4x2xf32> {tfm.port = "x"}, %w: tensor<2x2xf32> {tfm.port = "w"}) {
    // expected-error@+1 {{[FSDPQ-0503] 'tfm.linear' has no instruction}}
    %y = tfm.linear %x, %w : tensor<4x2xf32>, tensor<2x2xf32>
    tfm.return
  }
}

// -----

// Where units are cut, a rank has no whole gradient unless one is started.
tfm.architecture @m {
  tfm.param @a : tensor<64xf32> {init = "zeros", trainable}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @t [@a] {trainable, bytes = 512 : i64, parts = [#fsdp.part<@a, "data", offset = 0, bytes = 256>]}
  tfm.func @f() {
    fsdp.gradient_start @t
    %g = fsdp.gradient [@a] : tensor<64xf32>
    fsdp.reduce_scatter_start @t
    // expected-error@+1 {{[FSDPQ-0504] @t has no whole gradient here; run fsdp-insert-collectives}}
    %h = fsdp.gradient [@a] : tensor<64xf32>
    tfm.return
  }
}
