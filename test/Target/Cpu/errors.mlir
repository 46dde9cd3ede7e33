// RUN: fsdpq-opt %s --split-input-file --verify-diagnostics --kern-to-llvm

// expected-error@+1 {{kernel @wide needs 400064 bytes of temporary tiles, the limit is 262144; loop over smaller tiles}}
kern.func @wide(%x: memref<?x100001xf32>, %y: memref<?x100001xf32>) grid(%row) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %next = arith.addi %row, %c1 : index
  %a = kern.load %x[%row, %c0] : memref<?x100001xf32> -> tensor<100001xf32>
  kern.store %a, %x[%next, %c0] : tensor<100001xf32> -> memref<?x100001xf32>
  kern.store %a, %y[%row, %c0] : tensor<100001xf32> -> memref<?x100001xf32>
}

// -----

kern.func @vectorTable(%x: memref<?xi32>, %y: memref<?xf32>) grid(%row) {
  %v = arith.constant dense<0> : vector<4xi32>
  // expected-error@+1 {{a kernel's body looks up scalars only}}
  %e = kern.lookup %v, dense<[1.0, 2.0]> : tensor<2xf32> : vector<4xi32> -> vector<4xf32>
  %s = vector.reduction <add>, %e : vector<4xf32> into f32
  memref.store %s, %y[%row] : memref<?xf32>
}
