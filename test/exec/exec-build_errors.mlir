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
  tfm.param @q : tensor<64xf32> {hf = "q"}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @u [@q] {bytes = 512 : i64, parts = [#fsdp.part<@q, "data", offset = 0, bytes = 256>]}
  tfm.func @f() {
    // expected-error@+1 {{[FSDPQ-0503] 'fsdp.all_gather_start' has no instruction on a mesh of one rank}}
    %p = fsdp.all_gather_start @u
    %g = fsdp.wait %p
    fsdp.release %g
    tfm.return
  }
}
