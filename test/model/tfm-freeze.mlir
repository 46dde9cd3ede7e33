// RUN: %opt %s --tfm-freeze=train=all | FileCheck %s --check-prefix=ALL
// RUN: %opt %s --tfm-freeze=train=adapters | FileCheck %s --check-prefix=ADAPTERS

tfm.architecture @m {
  // ALL: tfm.param @q per_layer : tensor<64x64xf32> {hf = "q.{layer}", trainable}
  // ADAPTERS: tfm.param @q per_layer : tensor<64x64xf32> {hf = "q.{layer}"}
  tfm.param @q per_layer : tensor<64x64xf32> {hf = "q.{layer}"}
  // What was trainable and is no adapter is frozen.
  // ALL: tfm.param @n : tensor<64xf32> {hf = "n", trainable}
  // ADAPTERS: tfm.param @n : tensor<64xf32> {hf = "n"}
  tfm.param @n : tensor<64xf32> {hf = "n", trainable}
  // ALL: tfm.param @a : tensor<64xf32> {init = "zeros", trainable}
  // ADAPTERS: tfm.param @a : tensor<64xf32> {init = "zeros", trainable}
  tfm.param @a : tensor<64xf32> {init = "zeros"}
}
