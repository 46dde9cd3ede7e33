// REQUIRES: nvrtc
// RUN: %opt %s --split-input-file --verify-diagnostics --kern-check-resources
// RUN: not %opt %s --split-input-file --kern-check-resources=arch=sm_70 2>&1 | FileCheck %s --check-prefix=ARCH
// ARCH: [FSDPQ-0511] unknown GPU architecture 'sm_70'; known: sm_80, {{.*}}sm_90a

// All are reported.
// expected-error@+1 {{kernel @first: [FSDPQ-0521] its blocks need 232464 bytes of shared memory (232464 of them dynamic), and sm_90a has 232448; choose smaller tiles or fewer stages (#kern.emission)}}
kern.func @first(%x: memref<?x64xf32>) grid(%row)
    attributes {emission = #kern.emission<family = "tiles", threads = 256, group = 256, shared = 232464>} {
  %c0 = arith.constant 0 : index
  %t = kern.load %x[%row, %c0] : memref<?x64xf32> -> tensor<64xf32>
  kern.store %t, %x[%row, %c0] : tensor<64xf32> -> memref<?x64xf32>
}
// expected-error@+1 {{kernel @second: [FSDPQ-0521] its blocks need 400000 bytes}}
kern.func @second(%x: memref<?x128xf32>) grid(%row)
    attributes {emission = #kern.emission<family = "tiles", threads = 256, group = 256, shared = 400000>} {
  %c0 = arith.constant 0 : index
  %t = kern.load %x[%row, %c0] : memref<?x128xf32> -> tensor<128xf32>
  kern.store %t, %x[%row, %c0] : tensor<128xf32> -> memref<?x128xf32>
}

// -----

// expected-error@+2 {{[FSDPQ-0512] has no emission; run kern-prepare-emission first}}
// expected-note@+1 {{see current operation}}
kern.func @unprepared(%x: memref<?x64xf32>) grid(%row) {
}
