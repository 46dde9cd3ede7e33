// RUN: %opt %s --tfm-insert-optimizer='rule=adamw options=beta1=0.5,beta2=0.75,epsilon=1.0,weight_decay=0.125' | FileCheck %s
// RUN: %opt %s --tfm-insert-optimizer=rule=sgd | FileCheck %s --check-prefix=SGD

// SGD: tfm.optimizer_update [@a], %{{.*}} rule = "sgd" options = {}
// Frozen parameters take no part.
// CHECK-LABEL: tfm.func @optimizer_step() {
// CHECK-NEXT:   %[[V0:.+]] = tfm.grad_norm [@a, @b] : tensor<1xf32>
// CHECK-NEXT:   tfm.optimizer_update [@a], %[[V0]] rule = "adamw" options = {beta1 = 5.000000e-01 : f64, beta2 = 7.500000e-01 : f64, epsilon = 1.000000e+00 : f64, weight_decay = 1.250000e-01 : f64} : tensor<1xf32>
// CHECK-NEXT:   tfm.optimizer_update [@b], %[[V0]] rule = "adamw" options = {beta1 = 5.000000e-01 : f64, beta2 = 7.500000e-01 : f64, epsilon = 1.000000e+00 : f64, weight_decay = 1.250000e-01 : f64} : tensor<1xf32>
// CHECK-NEXT:   tfm.return
tfm.architecture @m {
  tfm.param @a per_layer : tensor<64xf32> {hf = "a.{layer}", trainable}
  tfm.param @frozen : tensor<64xf32> {hf = "f"}
  tfm.param @b : tensor<64x64xf32> {init = "zeros", trainable}
}
