// RUN: %opt %s --tfm-insert-adapters='rank=4 scale=2.0 dropout=0.1 targets=all-linear' | FileCheck %s
// RUN: %opt %s --tfm-insert-adapters='rank=4 targets=all-linear' | FileCheck %s --check-prefix=NONE
//
// Layers of one input read one dropout of it, whose place in the layer is its own.

// NONE: tfm.layer @block
// NONE-NOT: dropout
// NONE: tfm.layer @other

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>

tfm.architecture @m {
  tfm.param @q per_layer : !w {hf = "model.layers.{layer}.self_attn.q_proj.weight"}
  tfm.param @k per_layer : !w {hf = "model.layers.{layer}.self_attn.k_proj.weight"}
  tfm.param @o per_layer : !w {hf = "model.layers.{layer}.self_attn.o_proj.weight"}

// CHECK-LABEL: tfm.layer @block(
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK: %[[DROPPED:.+]] = tfm.dropout %[[X]] {mask = #tfm.dropout<rate = 1.000000e-01 : f64, site = 0>}
// CHECK: %[[Q:.+]] = tfm.linear %[[X]],
// CHECK: %[[QA:.+]] = tfm.use [@q.lora_A]
// CHECK: tfm.linear %[[DROPPED]], %[[QA]]
// CHECK: tfm.linear %[[X]],
// CHECK: %[[KA:.+]] = tfm.use [@k.lora_A]
// CHECK: tfm.linear %[[DROPPED]], %[[KA]]
// CHECK: %[[SUM:.+]] = tfm.mul
// CHECK: %[[OTHER:.+]] = tfm.dropout %[[SUM]] {mask = #tfm.dropout<rate = 1.000000e-01 : f64, site = 1>}
// CHECK: tfm.linear %[[SUM]],
// CHECK: %[[OA:.+]] = tfm.use [@o.lora_A]
// CHECK: tfm.linear %[[OTHER]], %[[OA]]
  tfm.layer @block(%x: !x) -> !x {
    %q = tfm.use [@q] : !w
    %k = tfm.use [@k] : !w
    %o = tfm.use [@o] : !w
    %0 = tfm.linear %x, %q : !x, !w
    %1 = tfm.linear %x, %k : !x, !w
    %2 = tfm.mul %0, %1 : !x, !x
    %3 = tfm.linear %2, %o : !x, !w
    tfm.return %3 : !x
  }

// Each kind counts its own places.
// CHECK-LABEL: tfm.layer @other(
// CHECK: site = 0>
  tfm.layer @other(%x: !x) -> !x {
    %q = tfm.use [@q] : !w
    %0 = tfm.linear %x, %q : !x, !w
    tfm.return %0 : !x
  }

// What drops already keeps its place.
// CHECK-LABEL: tfm.layer @drops_already(
// CHECK: tfm.dropout %{{.+}} {mask = #tfm.dropout<rate = 5.000000e-01 : f64, site = 4>}
// CHECK: tfm.dropout %{{.+}} {mask = #tfm.dropout<rate = 1.000000e-01 : f64, site = 5>}
  tfm.layer @drops_already(%x: !x) -> !x {
    %q = tfm.use [@q] : !w
    %d = tfm.dropout %x {mask = #tfm.dropout<rate = 0.5 : f64, site = 4>} : !x
    %0 = tfm.linear %d, %q : !x, !w
    tfm.return %0 : !x
  }
}
