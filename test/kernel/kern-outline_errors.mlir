// RUN: %opt %s --split-input-file --verify-diagnostics --kern-outline

!ids = tensor<128xi32, #tfm.dims<"T">>
!r = tensor<128x8xf32, #tfm.dims<"T", "">>
tfm.architecture @factors {
  tfm.func @f(%p: !ids) -> !r {
    // expected-error@+1 {{[FSDPQ-0401] 3 rotary factors for 4 frequencies}}
    %t = tfm.rope_table %p {theta = 1.0e4, factors = [1.0, 2.0, 3.0]} : !ids -> !r
    tfm.return %t : !r
  }
}

// -----

!ids = tensor<128xi32, #tfm.dims<"T">>
!r = tensor<128x8xf32, #tfm.dims<"T", "">>
tfm.architecture @no_factor {
  tfm.func @f(%p: !ids) -> !r {
    // expected-error@+1 {{[FSDPQ-0402] rope scaling 'linear' needs a positive 'factor'}}
    %t = tfm.rope_table %p {theta = 1.0e4, scaling = {rope_type = "linear"}} : !ids -> !r
    tfm.return %t : !r
  }
}

// -----

!ids = tensor<128xi32, #tfm.dims<"T">>
!r = tensor<128x8xf32, #tfm.dims<"T", "">>
tfm.architecture @zero_factor {
  tfm.func @f(%p: !ids) -> !r {
    // expected-error@+1 {{[FSDPQ-0402] rope scaling 'llama3' needs a positive 'factor'}}
    %t = tfm.rope_table %p {theta = 1.0e4, scaling = {rope_type = "llama3", factor = 0.0}} : !ids -> !r
    tfm.return %t : !r
  }
}

// -----

// A factor that is no number counts as absent.

!ids = tensor<128xi32, #tfm.dims<"T">>
!r = tensor<128x8xf32, #tfm.dims<"T", "">>
tfm.architecture @text_factor {
  tfm.func @f(%p: !ids) -> !r {
    // expected-error@+1 {{[FSDPQ-0402] rope scaling 'linear' needs a positive 'factor'}}
    %t = tfm.rope_table %p {theta = 1.0e4, scaling = {type = "linear", factor = "8"}} : !ids -> !r
    tfm.return %t : !r
  }
}

// -----

!ids = tensor<128xi32, #tfm.dims<"T">>
!r = tensor<128x8xf32, #tfm.dims<"T", "">>
tfm.architecture @equal_bounds {
  tfm.func @f(%p: !ids) -> !r {
    // expected-error@+1 {{[FSDPQ-0402] rope scaling 'llama3' needs 0 < low_freq_factor < high_freq_factor and original_max_position_embeddings}}
    %t = tfm.rope_table %p {theta = 1.0e4, scaling = {rope_type = "llama3", factor = 8.0, low_freq_factor = 4.0,
      high_freq_factor = 4.0, original_max_position_embeddings = 1000 : i64}} : !ids -> !r
    tfm.return %t : !r
  }
}

// -----

!ids = tensor<128xi32, #tfm.dims<"T">>
!r = tensor<128x8xf32, #tfm.dims<"T", "">>
tfm.architecture @no_context {
  tfm.func @f(%p: !ids) -> !r {
    // expected-error@+1 {{[FSDPQ-0402] rope scaling 'llama3' needs 0 < low_freq_factor}}
    %t = tfm.rope_table %p {theta = 1.0e4, scaling = {rope_type = "llama3", factor = 8.0, low_freq_factor = 1.0,
      high_freq_factor = 4.0}} : !ids -> !r
    tfm.return %t : !r
  }
}

// -----

// Parameters instead of units: tfm-fuse-optimizer has not run, or could not join.

tfm.architecture @norm_of_parameter {
  tfm.param @a : tensor<64xf32> {hf = "a", init = "zeros", trainable}
  tfm.func @optimizer_step() {
    // expected-error@+1 {{[FSDPQ-0403] @a is no trainable unit with a layout; run tfm-fuse-optimizer first}}
    %n = tfm.grad_norm [@a] : tensor<1xf32>
    tfm.return
  }
}

// -----

tfm.architecture @update_of_parameter {
  tfm.param @a : tensor<64xf32> {hf = "a", init = "zeros", trainable}
  tfm.func @optimizer_step(%n: tensor<1xf32>) {
    // expected-error@+1 {{[FSDPQ-0403] @a is no trainable unit with a layout}}
    tfm.optimizer_update [@a], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.return
  }
}

// -----

// A unit without layout, and one that is not trained.

tfm.architecture @no_layout {
  tfm.param @a : tensor<64xf32> {hf = "a", init = "zeros", trainable}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @u [@a] {trainable}
  tfm.func @optimizer_step() {
    // expected-error@+1 {{[FSDPQ-0403] @u is no trainable unit with a layout}}
    %n = tfm.grad_norm [@u] : tensor<1xf32>
    tfm.return
  }
}

// -----

tfm.architecture @frozen {
  tfm.param @a : tensor<64xf32> {hf = "a"}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @u [@a] {bytes = 256 : i64}
  tfm.func @optimizer_step(%n: tensor<1xf32>) {
    // expected-error@+1 {{[FSDPQ-0403] @u is no trainable unit with a layout}}
    tfm.optimizer_update [@u], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.return
  }
}
