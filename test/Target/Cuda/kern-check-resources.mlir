// REQUIRES: nvrtc
// RUN: %opt %s --kern-prepare-emission=arch=sm_90a --kern-check-resources=arch=sm_90a -o %t.checked --remarks-filter=fsdpq.* --remark-format=emitRemark 2>&1 | FileCheck %s
// RUN: %opt %s --kern-prepare-emission=arch=sm_90a | diff - %t.checked

// Another architecture, and from the cache.
// RUN: rm -rf %t.cache
// RUN: %opt %s --kern-prepare-emission=arch=sm_80 "--kern-check-resources=arch=sm_80 cache=%t.cache" -o /dev/null
// RUN: ls %t.cache | FileCheck %s --check-prefix=CACHE
// RUN: %opt %s --kern-prepare-emission=arch=sm_80 "--kern-check-resources=arch=sm_80 cache=%t.cache" -o /dev/null --remarks-filter=fsdpq.* --remark-format=emitRemark 2>&1 | FileCheck %s

// CHECK: remark: [Analysis] kernel-resources | Category:fsdpq{{.*}}@scale: {{[0-9]+}} threads of {{[1-9][0-9]*}} registers, 0 bytes of shared memory
// CACHE: {{^[0-9a-f]*}}.cubin{{$}}

kern.func @scale(%x: memref<?x64xf32>, %s: f64) grid(%row) {
  %c0 = arith.constant 0 : index
  %f = arith.truncf %s : f64 to f32
  %t = kern.load %x[%row, %c0] : memref<?x64xf32> -> tensor<64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]}
      ins(%t : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %f : f32
    linalg.yield %m : f32
  } -> tensor<64xf32>
  kern.store %r, %x[%row, %c0] : tensor<64xf32> -> memref<?x64xf32>
}
