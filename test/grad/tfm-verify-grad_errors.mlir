// RUN: %opt %s --split-input-file --verify-diagnostics --tfm-verify-grad

!w = tensor<64xf32>

tfm.architecture @m {
  // expected-error@+2 {{[FSDPQ-0290] after the grad phase: @a is trainable and gets no gradient}}
  // expected-error@+1 {{[FSDPQ-0290] after the grad phase: @a is trainable and is never updated}}
  tfm.param @a : !w {hf = "a", trainable}
  // expected-error@+1 {{[FSDPQ-0290] after the grad phase: @b is trainable and is never updated}}
  tfm.param @b : !w {hf = "b", trainable}
  // expected-error@+1 {{[FSDPQ-0290] after the grad phase: @c is frozen and gets a gradient}}
  tfm.param @c : !w {hf = "c"}
  // expected-error@+1 {{[FSDPQ-0290] after the grad phase: @d is frozen and gets a gradient}}
  tfm.param @d : !w {hf = "d"}
  tfm.param @e : !w {hf = "e", trainable}
  tfm.func @micro_step(%g: !w) {
    tfm.accumulate [@b], %g : !w
    tfm.accumulate [@c], %g : !w
    tfm.accumulate [@e], %g : !w
    tfm.return
  }
  tfm.func @optimizer_step(%n: tensor<1xf32>) {
    tfm.optimizer_update [@d], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.optimizer_update [@e], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.return
  }
}

// -----

// No gradient step, nothing to check.
tfm.architecture @m {
  tfm.param @a : tensor<64xf32> {hf = "a", trainable}
  tfm.func @eval_step() {
    tfm.return
  }
}

// -----

!x = tensor<4x4xf32>
tfm.architecture @m {
  tfm.layer @k(%x: !x) -> (!x, !x) {
    tfm.return %x, %x : !x, !x
  }
  tfm.layer @k.more(%dy: !x, %a: !x, %b: !x) -> !x {
    tfm.return %dy : !x
  }
  tfm.layer @k.back(%dy: !x, %a: !x) -> !x {
    tfm.return %dy : !x
  }
  tfm.func @micro_step(%x: !x) {
    %y, %s = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0, 0>} : !x -> !x, !tfm.saved
    // expected-error@+1 {{[FSDPQ-0290] after the grad phase: @k keeps 'tensor<4x4xf32>', @k.more expects 'tensor<4x4xf32>', 'tensor<4x4xf32>'}}
    %d = tfm.stack_grad(%y) saved(%s) kinds = [@k.more] {layers = array<i32: 0, 0>} : !x -> !x
    // Another number of layers.
    // expected-error@+1 {{[FSDPQ-0290] after the grad phase: its residuals are not those of a stack like it}}
    %e = tfm.stack_grad(%d) saved(%s) kinds = [@k.back] {layers = array<i32: 0>} : !x -> !x
    // Another number of kinds.
    // expected-error@+1 {{[FSDPQ-0290] after the grad phase: its residuals are not those of a stack like it}}
    %f = tfm.stack_grad(%e) saved(%s) kinds = [@k.back, @k.back] {layers = array<i32: 0, 0>} : !x -> !x
    tfm.return
  }
}
