// RUN: %opt %s --tfm-merge-kinds | FileCheck %s

!x = tensor<128x64xf32, #tfm.dims<"T", "">>

tfm.architecture @m {
  tfm.param @n per_layer : tensor<64xf32> {hf = "n.{layer}"}
  tfm.param @o per_layer : tensor<64xf32> {hf = "o.{layer}"}
  // CHECK: tfm.layer @a
  tfm.layer @a(%x: !x) -> !x {
    %n = tfm.use [@n] : tensor<64xf32>
    %h, %rstd = tfm.rms_norm %x, %n {eps = 1.0e-5} : !x, tensor<64xf32>
    tfm.return %h : !x
  }
  // Another parameter.
  // CHECK: tfm.layer @b
  tfm.layer @b(%x: !x) -> !x {
    %n = tfm.use [@o] : tensor<64xf32>
    %h, %rstd = tfm.rms_norm %x, %n {eps = 1.0e-5} : !x, tensor<64xf32>
    tfm.return %h : !x
  }
  // The same as @a.
  // CHECK-NOT: tfm.layer @c
  tfm.layer @c(%x: !x) -> !x {
    %n = tfm.use [@n] : tensor<64xf32>
    %h, %rstd = tfm.rms_norm %x, %n {eps = 1.0e-5} : !x, tensor<64xf32>
    tfm.return %h : !x
  }
  // Another number.
  // CHECK: tfm.layer @d
  tfm.layer @d(%x: !x) -> !x {
    %n = tfm.use [@n] : tensor<64xf32>
    %h, %rstd = tfm.rms_norm %x, %n {eps = 1.0e-6} : !x, tensor<64xf32>
    tfm.return %h : !x
  }
  // CHECK-NOT: tfm.layer @e
  tfm.layer @e(%x: !x) -> !x {
    %n = tfm.use [@o] : tensor<64xf32>
    %h, %rstd = tfm.rms_norm %x, %n {eps = 1.0e-5} : !x, tensor<64xf32>
    tfm.return %h : !x
  }
  // CHECK-LABEL: tfm.func @f
  // CHECK-NEXT: tfm.stack(%arg0) kinds = [@a, @b, @d] {layers = array<i32: 0, 1, 0, 2, 1, 0>}
  tfm.func @f(%x: !x) -> !x {
    %y = tfm.stack(%x) kinds = [@a, @b, @c, @d, @e] {layers = array<i32: 0, 1, 2, 3, 4, 0>} : !x -> !x
    tfm.return %y : !x
  }
  // Without layers yet nothing is known.
  // CHECK-LABEL: tfm.func @unbound
  // CHECK-NEXT: tfm.stack(%arg0) kinds = [@a, @a] {depth = 2 : i64}
  tfm.func @unbound(%x: !x) -> !x {
    %y = tfm.stack(%x) kinds = [@a, @a] {depth = 2 : i64} : !x -> !x
    tfm.return %y : !x
  }
}
