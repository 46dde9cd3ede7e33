// RUN: fsdpq-opt %s --split-input-file --verify-diagnostics --kern-prepare-emission
// RUN: not fsdpq-opt %s --kern-prepare-emission=arch=sm_70 2>&1 | FileCheck %s --check-prefix=ARCH
// ARCH: [FSDPQ-0511] unknown GPU architecture 'sm_70'

#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
// The sums of 256 x 256 elements live in shared memory, and do not fit.
// expected-error@+1 {{[FSDPQ-0510] kernel @large cannot be emitted for CUDA: 'kern.func' needs 262144 bytes of shared memory for its tiles; a block of sm_90a has 232448}}
kern.func @large(%x: memref<?x256xf32>, %y: memref<256x256xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %a = kern.load %x[%c0, %c0] : memref<?x256xf32> -> tensor<256x256xf32>
  %e = tensor.empty() : tensor<256x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  // expected-note@+1 {{with tiles in registers: 'linalg.generic' reduces to a tile}}
  %s = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : tensor<256x256xf32>, tensor<256x256xf32>) outs(%f : tensor<256x256xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.addf %w, %p : f32
    linalg.yield %q : f32
  } -> tensor<256x256xf32>
  kern.store %s, %y[%c0, %c0] : tensor<256x256xf32> -> memref<256x256xf32>
}

// -----

// expected-note@+1 {{with tiles in registers}}
kern.func @vectors(%x: memref<?xi32>, %y: memref<?xf32>) grid(%row) {
  %c = memref.load %x[%row] : memref<?xi32>
  // expected-error@+1 {{[FSDPQ-0510] kernel @vectors cannot be emitted for CUDA: 'vector.broadcast' has no expression in CUDA}}
  %v = vector.broadcast %c : i32 to vector<4xi32>
  %e = kern.lookup %v, dense<[1.0, 2.0]> : tensor<2xf32> : vector<4xi32> -> vector<4xf32>
  %s = vector.reduction <add>, %e : vector<4xf32> into f32
  memref.store %s, %y[%row] : memref<?xf32>
}
