// RUN: %opt %s --split-input-file --fsdp-form-units | FileCheck %s
// RUN: %opt %s --split-input-file --fsdp-form-units=ranks=2 | FileCheck %s --check-prefix=TWO
// RUN: %opt %s --split-input-file "--fsdp-form-units=ranks=4 shards=2" | FileCheck %s --check-prefix=GROUPS
// RUN: %opt %s --split-input-file "--fsdp-form-units=ranks=4 shards=4" | FileCheck %s --check-prefix=EACH
// RUN: %opt %s --split-input-file "--fsdp-form-units=ranks=4 shards=1 deterministic=true" | FileCheck %s --check-prefix=ORDER
// RUN: %opt %s --split-input-file --fsdp-form-units=split=true | FileCheck %s --check-prefix=SPLIT

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// Only the mesh differs.
// TWO: fsdp.mesh @mesh ranks = 2
// TWO-NEXT: fsdp.unit @layers.base [@q, @k, @v] layers = [0, 1, 2, 3, 4]{{$}}
// GROUPS: fsdp.mesh @mesh ranks = 4 shards = 2{{$}}
// EACH: fsdp.mesh @mesh ranks = 4{{$}}
// ORDER: fsdp.mesh @mesh ranks = 4 shards = 1 {deterministic}{{$}}

tfm.architecture @m {
  tfm.param @embed : !w {hf = "e"}
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  tfm.param @a per_layer : !w {hf = "a.{layer}", trainable}
  tfm.param @v per_layer : !w {hf = "v.{layer}"}
  tfm.param @k per_layer : !w {hf = "k.{layer}"}
  tfm.param @only_b per_layer : !w {hf = "o.{layer}"}
  tfm.param @norm : !w {hf = "n"}
  tfm.param @unused : !w {hf = "unused"}
  // CHECK: tfm.param @unused
  // CHECK-NEXT: fsdp.mesh @mesh ranks = 1
  // Per-layer parameters by the layers that use them; what one use joins stays
  // together, in its order. Trainable ones apart.
  // CHECK-NEXT: fsdp.unit @layers.base [@q, @k, @v] layers = [0, 1, 2, 3, 4]{{$}}
  // CHECK-NEXT: fsdp.unit @layers.trained [@a] layers = [0, 2] {trainable}
  // CHECK-NEXT: fsdp.unit @layers.base.1 [@only_b] layers = [1, 3, 4]{{$}}
  // Others by the functions that use them.
  // CHECK-NEXT: fsdp.unit @embed.base [@embed]{{$}}
  // CHECK-NEXT: fsdp.unit @norm.base [@norm]{{$}}
  // CHECK-NOT: fsdp.unit
  tfm.layer @a_kind(%x: !x) -> !x {
    %q = tfm.use [@q, @k, @v] : tensor<192x64xf32>
    %a = tfm.use [@a] : !w
    tfm.return %x : !x
  }
  tfm.layer @b_kind(%x: !x) -> !x {
    %q = tfm.use [@q, @k, @v] : tensor<192x64xf32>
    %o = tfm.use [@only_b] : !w
    tfm.return %x : !x
  }
  tfm.func @micro_step(%x: !x) -> !x {
    %e = tfm.use [@embed] : !w
    %n = tfm.use [@norm] : !w
    %y = tfm.stack(%x) kinds = [@a_kind, @b_kind] {layers = array<i32: 0, 1, 0, 1, 1>} : !x -> !x
    tfm.return %y : !x
  }
  tfm.func @logits(%x: !x) {
    %e = tfm.use [@embed] : !w
    tfm.return
  }
}

// -----

// Attention ends by adding to what the layer carries on, and so does the MLP. What
// is used before the first sum is a unit, what is used after it alone another; what
// both halves use is with the first. Trained parameters are not cut, and the order
// in which a backward kind uses them decides nothing.
// CHECK-LABEL: tfm.architecture @halves
// CHECK: fsdp.unit @layers.base [@q, @o, @both, @up, @down] layers = [0, 1]{{$}}
// CHECK-NEXT: fsdp.unit @layers.trained [@a, @b] layers = [0, 1] {trainable}
// CHECK-NEXT: fsdp.unit @norm.base [@norm]{{$}}
// SPLIT-LABEL: tfm.architecture @halves
// SPLIT: fsdp.unit @layers.attention.base [@q, @o, @both] layers = [0, 1]{{$}}
// SPLIT-NEXT: fsdp.unit @layers.trained [@a, @b] layers = [0, 1] {trainable}
// SPLIT-NEXT: fsdp.unit @layers.mlp.base [@up, @down] layers = [0, 1]{{$}}
// SPLIT-NEXT: fsdp.unit @norm.base [@norm]{{$}}
// SPLIT-NOT: fsdp.unit
!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>
tfm.architecture @halves {
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  tfm.param @o per_layer : !w {hf = "o.{layer}"}
  tfm.param @a per_layer : !w {hf = "a.{layer}", trainable}
  tfm.param @b per_layer : !w {hf = "b.{layer}", trainable}
  tfm.param @both per_layer : !w {hf = "both.{layer}"}
  tfm.param @up per_layer : !w {hf = "up.{layer}"}
  tfm.param @down per_layer : !w {hf = "down.{layer}"}
  tfm.param @norm : !w {hf = "n"}
  tfm.layer @k.forward(%x: !x) -> (!x, !x) {
    %q = tfm.use [@q] : !w
    %o = tfm.use [@o] : !w
    %both = tfm.use [@both] : !w
    %a = tfm.use [@a] : !w
    %up = tfm.use [@up] : !w
    %0 = tfm.linear %x, %q : !x, !w
    %1 = tfm.linear %0, %both : !x, !w
    %2 = tfm.add %0, %1 : !x, !x
    %3 = tfm.linear %2, %a : !x, !w
    %4 = tfm.linear %3, %o : !x, !w
    %5 = tfm.add %x, %4 : !x, !x
    %6 = tfm.linear %5, %up : !x, !w
    %b = tfm.use [@b] : !w
    %7 = tfm.linear %6, %b : !x, !w
    %8 = tfm.linear %7, %both : !x, !w
    %down = tfm.use [@down] : !w
    %9 = tfm.linear %8, %down : !x, !w
    %10 = tfm.add %5, %9 : !x, !x
    tfm.return %10, %x : !x, !x
  }
  tfm.layer @k.backward(%dy: !x, %r: !x) -> !x {
    %down = tfm.use [@down] : !w
    %0 = tfm.matmul %dy, %down : !x, !w
    %q = tfm.use [@q] : !w
    %1 = tfm.matmul %0, %q : !x, !w
    %2 = tfm.add %dy, %1 : !x, !x
    tfm.return %2 : !x
  }
  tfm.func @micro_step(%x: !x) -> !x {
    %n = tfm.use [@norm] : !w
    %x0 = tfm.linear %x, %n : !x, !w
    %y, %s = tfm.stack(%x0) kinds = [@k.forward] {layers = array<i32: 0, 0>} : !x -> !x, !tfm.saved
    %d = tfm.stack_grad(%y) saved(%s) kinds = [@k.backward] {layers = array<i32: 0, 0>} : !x -> !x
    tfm.return %d : !x
  }
}
