// RUN: %opt %s --split-input-file --verify-diagnostics --tfm-verify-model

// expected-error@+1 {{[FSDPQ-0190] the module holds 2 architectures after the model phase, not one}}
module {
  tfm.architecture @a {
  }
  tfm.architecture @b {
  }
}

// -----

// Every offender is reported.
!x = tensor<?x?xf32, #tfm.dims<"T", "D">>
tfm.architecture @m {
  // expected-error@+1 {{[FSDPQ-0191] after the model phase: @n has an unbound size}}
  tfm.param @n : tensor<?xf32, #tfm.dims<"D">> {hf = "n"}
  // expected-error@+1 {{[FSDPQ-0191] after the model phase: @q is quantised and trainable}}
  tfm.param @q : tensor<64x64x!qt.nf4<block = 64, scale = f32>> {hf = "q", trainable}
  tfm.param @p per_layer : tensor<64xf32> {hf = "p.{layer}"}
  // expected-error@+1 {{[FSDPQ-0191] after the model phase: @unused is used nowhere}}
  tfm.param @unused : tensor<64xf32> {hf = "u"}
  tfm.layer @block(%x: !x) -> !x {
    tfm.return %x : !x
  }
  tfm.func @f(%x: !x, %y: tensor<4x4xf32>) {
    %n = tfm.use [@q] : tensor<64x64x!qt.nf4<block = 64, scale = f32>>
    // expected-error@+1 {{has an unbound size}}
    %m = tfm.use [@n] : tensor<?xf32, #tfm.dims<"D">>
    // expected-error@+1 {{[FSDPQ-0191] after the model phase: 'factor' still waits for the configuration's "eps"}}
    %0 = tfm.scale %y {factor = #tfm.config<"eps">} : tensor<4x4xf32>
    // expected-error@+1 {{[FSDPQ-0191] after the model phase: the result 'tensor<?x?xf32, #tfm.dims<"T", "D">>' has an unbound size}}
    %1 = tfm.scale %x {factor = 2.0} : !x
    // expected-error@+1 {{[FSDPQ-0191] after the model phase: @p is per-layer but used outside a layer}}
    %2 = tfm.use [@p] : tensor<64xf32>
    // expected-error@+2 {{[FSDPQ-0191] after the model phase: the stack has no layers}}
    // expected-error@+1 {{has an unbound size}}
    %3 = tfm.stack(%x) kinds = [@block] {depth = 2 : i64} : !x -> !x
    tfm.return
  }
}

// -----

// A chunk's rows do not know which of all they are.
!x = tensor<128x64xf32, #tfm.dims<"R", "">>
!c = tensor<128x64xf32, #tfm.dims<"C", "">>
tfm.architecture @m {
  tfm.func @chunk(%x: !c) -> !c {
    // expected-error@+1 {{[FSDPQ-0191] after the model phase: rows of a chunk cannot be dropped}}
    %y = tfm.dropout %x {mask = #tfm.dropout<rate = 0.1 : f64, site = 0>} : !c
    tfm.return %y : !c
  }
  tfm.func @f(%x: !x) -> !x {
    %y = tfm.chunk_loop(%x) body = @chunk chunk = 128 : (!x) -> !x
    tfm.return %y : !x
  }
}
