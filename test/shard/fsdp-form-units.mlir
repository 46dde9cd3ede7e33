// RUN: %opt %s --fsdp-form-units | FileCheck %s
// RUN: %opt %s --fsdp-form-units=ranks=2 | FileCheck %s --check-prefix=TWO

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

// Only the mesh differs.
// TWO: fsdp.mesh @mesh ranks = 2
// TWO-NEXT: fsdp.unit @layers.base [@q, @k, @v] layers = [0, 1, 2, 3, 4]{{$}}

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
