// RUN: %opt %s --tfm-verify-model | FileCheck %s

!x = tensor<128x64xf32, #tfm.dims<"T", "">>

// CHECK-LABEL: tfm.architecture @m
tfm.architecture @m {
  tfm.param @q per_layer : tensor<64x64x!qt.nf4<block = 64, scale = f32>> {hf = "q.{layer}"}
  tfm.param @n : tensor<64xf32> {hf = "n", trainable}
  tfm.layer @block(%x: !x) -> !x {
    %q = tfm.use [@q] : tensor<64x64x!qt.nf4<block = 64, scale = f32>>
    %y = tfm.linear %x, %q : !x, tensor<64x64x!qt.nf4<block = 64, scale = f32>>
    tfm.return %y : !x
  }
  tfm.func @f(%x: !x) -> !x {
    %n = tfm.use [@n] : tensor<64xf32>
    %y = tfm.stack(%x) kinds = [@block] {layers = array<i32: 0, 0>} : !x -> !x
    tfm.return %y : !x
  }
}
