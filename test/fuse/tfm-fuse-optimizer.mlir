// RUN: %opt %s --tfm-fuse-optimizer | FileCheck %s

!w = tensor<64xf32>

// Unit @all is updated as one; the parameters of @apart are not updated alike;
// @norm is in no unit.
tfm.architecture @a {
  tfm.param @a : !w {hf = "a", trainable}
  tfm.param @b : !w {hf = "b", trainable}
  tfm.param @c : !w {hf = "c", trainable}
  tfm.param @d : !w {hf = "d", trainable}
  tfm.param @norm : !w {hf = "norm", trainable}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @all [@a, @b] {trainable}
  fsdp.unit @apart [@c, @d] {trainable}
// CHECK-LABEL: tfm.func @optimizer_step() {
// CHECK-NEXT:   %[[V0:.+]] = tfm.grad_norm [@all, @c, @d, @norm] : tensor<1xf32>
// CHECK-NEXT:   tfm.optimizer_update [@all], %[[V0]] rule = "sgd" options = {} : tensor<1xf32>
// CHECK-NEXT:   tfm.optimizer_update [@c], %[[V0]] rule = "adadelta" options = {epsilon = 1.000000e+00 : f64, rho = 5.000000e-01 : f64} : tensor<1xf32>
// CHECK-NEXT:   tfm.optimizer_update [@d], %[[V0]] rule = "adadelta" options = {epsilon = 1.000000e+00 : f64, rho = 2.500000e-01 : f64} : tensor<1xf32>
// CHECK-NEXT:   tfm.optimizer_update [@norm], %[[V0]] rule = "sgd" options = {} : tensor<1xf32>
// CHECK-NEXT:   tfm.return
  tfm.func @optimizer_step() {
    %n = tfm.grad_norm [@a, @c, @b, @d, @norm] : tensor<1xf32>
    tfm.optimizer_update [@a], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.optimizer_update [@b], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.optimizer_update [@c], %n rule = "adadelta" options = {rho = 0.5, epsilon = 1.0} : tensor<1xf32>
    tfm.optimizer_update [@d], %n rule = "adadelta" options = {rho = 0.25, epsilon = 1.0} : tensor<1xf32>
    tfm.optimizer_update [@norm], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.return
  }
}

// Different rules, different norms, a parameter that is not updated.
tfm.architecture @b {
  tfm.param @a : !w {hf = "a", trainable}
  tfm.param @b : !w {hf = "b", trainable}
  tfm.param @c : !w {hf = "c", trainable}
  tfm.param @d : !w {hf = "d", trainable}
  tfm.param @e : !w {hf = "e", trainable}
  tfm.param @f : !w {hf = "f", trainable}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @rules [@a, @b] {trainable}
  fsdp.unit @norms [@c, @d] {trainable}
  fsdp.unit @missing [@e, @f] {trainable}
  // CHECK-LABEL: tfm.architecture @b
  // CHECK: tfm.func @optimizer_step
  // CHECK-NEXT: tfm.grad_norm [@a, @b, @c, @e]
  // CHECK-NEXT: tfm.grad_norm [@d]
  // CHECK-NEXT: tfm.optimizer_update [@a]
  // CHECK-NEXT: tfm.optimizer_update [@b]
  // CHECK-NEXT: tfm.optimizer_update [@c]
  // CHECK-NEXT: tfm.optimizer_update [@d]
  // CHECK-NEXT: tfm.optimizer_update [@e]
  // CHECK-NEXT: tfm.return
  tfm.func @optimizer_step() {
    %n = tfm.grad_norm [@a, @b, @c, @e] : tensor<1xf32>
    %m = tfm.grad_norm [@d] : tensor<1xf32>
    tfm.optimizer_update [@a], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.optimizer_update [@b], %n rule = "adadelta" options = {rho = 0.5, epsilon = 1.0} : tensor<1xf32>
    tfm.optimizer_update [@c], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.optimizer_update [@d], %m rule = "sgd" options = {} : tensor<1xf32>
    tfm.optimizer_update [@e], %n rule = "sgd" options = {} : tensor<1xf32>
    tfm.return
  }
}
