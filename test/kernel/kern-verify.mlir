// RUN: %opt %s --kern-verify | FileCheck %s

// CHECK-LABEL: tfm.architecture @m
tfm.architecture @m {
  kern.func @k(%y: memref<?xf32>, %z: memref<?xf32>) grid(%i) {
  }
  tfm.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %e = kern.empty : tensor<4xf32>
    %z = kern.fill into %e : tensor<4xf32>
    %c = kern.copy %x into %z : tensor<4xf32> into tensor<4xf32>
    %y = kern.call @k(%x) into(%c) grid = #kern.extent<add = 4, cap = 4> {extents = [], scalars = []} : (tensor<4xf32>) into(tensor<4xf32>)
    tfm.return %y : tensor<4xf32>
  }
}
