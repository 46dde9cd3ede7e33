// RUN: %opt %s --tfm-skip-dropout --split-input-file | FileCheck %s
//
// What @micro_step reaches keeps its dropout, the rest of a program has none.

!x = tensor<128x64xf32, #tfm.dims<"T", "">>
!w = tensor<64x64xf32>
#mask = #tfm.dropout<rate = 1.0e-01 : f64, site = 0>

// CHECK-LABEL: tfm.architecture @both
tfm.architecture @both {
  tfm.param @w per_layer : !w {hf = "w.{layer}"}
  tfm.param @a per_layer : !w {init = "zeros"}

// CHECK-LABEL: tfm.layer @k(
// CHECK-NOT: dropout
// CHECK: tfm.lora_linear %{{.+}} {adapted = array<i1: true>, parts = array<i64: 64>, scale = 2.000000e+00 : f64}
// CHECK-NOT: dropout
  tfm.layer @k(%x: !x) -> !x {
    %w = tfm.use [@w] : !w
    %a = tfm.use [@a] : !w
    %d = tfm.dropout %x {mask = #mask} : !x
    %y, %u = tfm.lora_linear %d, %w, %a, %a {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>, mask = #mask} : !x, !w, !w, !w
    tfm.return %y : !x
  }

// CHECK-LABEL: tfm.layer @k.forward(
// CHECK: tfm.dropout
// CHECK: tfm.lora_linear {{.*}}mask = #tfm.dropout<rate = 1.000000e-01 : f64, site = 0>
  tfm.layer @k.forward(%x: !x) -> !x {
    %w = tfm.use [@w] : !w
    %a = tfm.use [@a] : !w
    %d = tfm.dropout %x {mask = #mask} : !x
    %y, %u = tfm.lora_linear %d, %w, %a, %a {scale = 2.0, parts = array<i64: 64>, adapted = array<i1: true>, mask = #mask} : !x, !w, !w, !w
    tfm.return %y : !x
  }

// CHECK-LABEL: tfm.func @micro_step(
  tfm.func @micro_step(%x: !x) -> !x {
    %y = tfm.stack(%x) kinds = [@k.forward] {layers = array<i32: 0, 0>} : !x -> !x
    tfm.return %y : !x
  }

// CHECK-LABEL: tfm.func @eval_step(
// CHECK-NEXT: %[[Y:.+]] = tfm.stack(%{{.+}}) kinds = [@k]
// CHECK-NEXT: tfm.return %[[Y]]
  tfm.func @eval_step(%x: !x) -> !x {
    %y = tfm.stack(%x) kinds = [@k] {layers = array<i32: 0, 0>} : !x -> !x
    %d = tfm.dropout %y {mask = #mask} : !x
    tfm.return %d : !x
  }
}

// -----

// Without training nothing is left.
// CHECK-LABEL: tfm.architecture @evaluated
// CHECK-NOT: dropout
tfm.architecture @evaluated {
  tfm.layer @k(%x: tensor<128x64xf32>) -> tensor<128x64xf32> {
    %d = tfm.dropout %x {mask = #tfm.dropout<rate = 1.0e-01 : f64, site = 0>} : tensor<128x64xf32>
    tfm.return %d : tensor<128x64xf32>
  }
}
