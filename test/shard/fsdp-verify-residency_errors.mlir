// RUN: %opt %s --allow-unregistered-dialect --verify-diagnostics --split-input-file --fsdp-verify-residency

tfm.architecture @m {
  tfm.param @q : tensor<4x4xf32> {hf = "q"}
  tfm.param @k : tensor<4x4xf32> {hf = "k"}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @u [@q] {bytes = 512 : i64, parts = [#fsdp.part<@q, "data", offset = 0, bytes = 64>]}
  // expected-error@+1 {{[FSDPQ-0390] after the shard phase: @v has no layout}}
  fsdp.unit @v [@k]

  tfm.func @use() {
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase: a parameter is used without its unit}}
    %0 = tfm.use [@q] : tensor<4x4xf32>
    tfm.return
  }

  tfm.func @never_waited() {
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase: the gather of @u has 0 waits, not one}}
    %p = fsdp.all_gather_start @u
    tfm.return
  }

  tfm.func @waited_twice() {
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase: the gather of @u has 2 waits, not one}}
    %p = fsdp.all_gather_start @u
    %g = fsdp.wait %p
    %h = fsdp.wait %p
    fsdp.release %g
    fsdp.release %h
    tfm.return
  }

  tfm.func @never_released() {
    %p = fsdp.all_gather_start @u
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase: a gathered unit has 0 releases, not one}}
    %g = fsdp.wait %p
    tfm.return
  }

  tfm.func @released_twice() {
    %p = fsdp.all_gather_start @u
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase: a gathered unit has 2 releases, not one}}
    %g = fsdp.wait %p
    fsdp.release %g
    fsdp.release %g
    tfm.return
  }

  // To keep is to end, too; and what was kept must end.
  tfm.func @kept_and_released() {
    %p = fsdp.all_gather_start @u
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase: a gathered unit has 2 releases, not one}}
    %g = fsdp.wait %p
    fsdp.keep %g
    fsdp.release %g
    tfm.return
  }

  tfm.func @kept_for_ever() {
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase: a gathered unit has 0 releases, not one}}
    %g = fsdp.kept @u
    tfm.return
  }

  tfm.func @foreign_to_what_is_kept() {
    %g = fsdp.kept @u
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase: @k is not in @u}}
    %w = fsdp.view %g [@k] : tensor<4x4xf32>
    fsdp.release %g
    tfm.return
  }

  tfm.func @used_late() {
    %p = fsdp.all_gather_start @u
    %g = fsdp.wait %p
    %w = fsdp.view %g [@q] : tensor<4x4xf32>
    %y = tfm.linear %w, %w : tensor<4x4xf32>, tensor<4x4xf32>
    // expected-note@+1 {{uses a parameter whose unit is released here}}
    fsdp.release %g
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase:}}
    tfm.emit "w", %w : tensor<4x4xf32>
    tfm.return
  }

  tfm.func @foreign() {
    %g = fsdp.local @u
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase: @k is not in @u}}
    %w = fsdp.view %g [@q, @k] : tensor<8x4xf32>
    tfm.return
  }

  tfm.func @unknown() {
    %g = "test.gathered"() : () -> !fsdp.gathered
    // expected-error@+1 {{[FSDPQ-0390] after the shard phase: the view is of no known unit}}
    %w = fsdp.view %g [@q] : tensor<4x4xf32>
    tfm.return
  }
}
