// RUN: not %opt %s --tfm-insert-adapters='rank=0 targets=q_proj' 2>&1 | FileCheck %s --check-prefix=RANK0
// RUN: not %opt %s --tfm-insert-adapters='rank=5000 targets=q_proj' 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not %opt %s --tfm-insert-adapters=targets=q_proj,x_proj 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not %opt %s --tfm-insert-adapters 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not %opt %s --tfm-insert-adapters='dropout=1 targets=q_proj' 2>&1 | FileCheck %s --check-prefix=RATE
// RUN: sed 's,//NO_ROOM,,' %s | not %opt - --tfm-insert-adapters='dropout=0.1 targets=q_proj' 2>&1 | FileCheck %s --check-prefix=ROOM
// ROOM: [FSDPQ-0143] the layer has more than 64 places that drop: adapt fewer of its modules
// RATE: [FSDPQ-0142] dropout = 1.{{.*}}; 0 or more and less than 1 is possible
// RANK0: [FSDPQ-0140] rank = 0; 1 to 4096 are possible
// RANK: [FSDPQ-0140] rank = 5000; 1 to 4096 are possible
// TARGET: [FSDPQ-0141] the adapter target 'x_proj' matches no linear layer; there are: q_proj, k_proj
// NONE: [FSDPQ-0141] no adapter target is given

!x = tensor<128x64xf32, #tfm.dims<"T", "">>

tfm.architecture @m {
  tfm.param @q per_layer : tensor<64x64xf32> {hf = "model.layers.{layer}.self_attn.q_proj.weight"}
  tfm.param @k per_layer : tensor<64x64xf32> {hf = "model.layers.{layer}.self_attn.k_proj.weight"}
  tfm.layer @block(%x: !x) -> !x {
    %q = tfm.use [@q] : tensor<64x64xf32>
    %k = tfm.use [@k] : tensor<64x64xf32>
    //NO_ROOM %d = tfm.dropout %x {mask = #tfm.dropout<rate = 0.1 : f64, site = 63>} : !x
    %y = tfm.linear %x, %q : !x, tensor<64x64xf32>
    %z = tfm.linear %y, %k : !x, tensor<64x64xf32>
    tfm.return %z : !x
  }
}
