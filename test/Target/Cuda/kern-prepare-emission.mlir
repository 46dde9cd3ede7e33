// RUN: %opt %s --kern-prepare-emission --remarks-filter='emission' --remark-format=emitRemark 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: %opt %s --kern-prepare-emission=arch=sm_86 | FileCheck %s --check-prefixes=CHECK

#id = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0) -> ()>

// A row a block: two vectors of eight bf16 a thread.
// CHECK-LABEL: kern.func @square
// CHECK-SAME: emission = #kern.emission<family = "rows", threads = 256, group = 256>
// REMARK-DAG: [Passed] emission{{.*}}kernel @square is emitted by the family rows
kern.func @square(%x: memref<?x4096xbf16>, %y: memref<?x4096xbf16>) grid(%row) {
  %c0 = arith.constant 0 : index
  %a = kern.load %x[%row, %c0] : memref<?x4096xbf16> -> tensor<4096xbf16>
  %e = tensor.empty() : tensor<4096xbf16>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<4096xbf16>) outs(%e : tensor<4096xbf16>) {
  ^bb0(%v: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %r = arith.truncf %m : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<4096xbf16>
  kern.store %b, %y[%row, %c0] : tensor<4096xbf16> -> memref<?x4096xbf16>
}

// Small rows: a warp or less each, several a block.
// CHECK-LABEL: kern.func @narrow
// CHECK-SAME: emission = #kern.emission<family = "rows", threads = 128, group = 8>
kern.func @narrow(%x: memref<?x64xbf16>, %y: memref<?x64xbf16>) grid(%row) {
  %c0 = arith.constant 0 : index
  %a = kern.load %x[%row, %c0] : memref<?x64xbf16> -> tensor<64xbf16>
  kern.store %a, %y[%row, %c0] : tensor<64xbf16> -> memref<?x64xbf16>
}

// Heads of a row are shared out among teams.
// CHECK-LABEL: kern.func @heads
// CHECK-SAME: emission = #kern.emission<family = "rows", threads = 192, group = 8, teams = 24>
kern.func @heads(%x: memref<?x1536xbf16>) grid(%row) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c1536 = arith.constant 1536 : index
  %e = tensor.empty() : tensor<64xbf16>
  scf.for %i = %c0 to %c1536 step %c64 {
    %a = kern.load %x[%row, %i] : memref<?x1536xbf16> -> tensor<64xbf16>
    %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%a : tensor<64xbf16>) outs(%e : tensor<64xbf16>) {
    ^bb0(%v: bf16, %o: bf16):
      %n = arith.negf %v : bf16
      linalg.yield %n : bf16
    } -> tensor<64xbf16>
    kern.store %b, %x[%row, %i] : tensor<64xbf16> -> memref<?x1536xbf16>
  }
}

// Numbers only: an item a thread.
// CHECK-LABEL: kern.func @number
// CHECK-SAME: emission = #kern.emission<family = "rows", threads = 128, group = 1>
kern.func @number(%x: memref<?xf32>, %s: f64) grid(%i) {
  %f = arith.truncf %s : f64 to f32
  memref.store %f, %x[%i] : memref<?xf32>
}

// What is the same for all items and costs something is done once a block.
// CHECK-LABEL: kern.func @quotient
// CHECK-SAME: blocks = 16
kern.func @quotient(%x: memref<1024xf32>, %s: f64, %t: f64) grid(%i) {
  %q = arith.divf %s, %t : f64
  %f = arith.truncf %q : f64 to f32
  %c512 = arith.constant 512 : index
  %at = arith.muli %i, %c512 : index
  %e = tensor.empty() : tensor<512xf32>
  %z = linalg.fill ins(%f : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
  kern.store %z, %x[%at] : tensor<512xf32> -> memref<1024xf32>
}

// CHECK-LABEL: kern.func @product
// CHECK-SAME: emission = #kern.emission<family = "tiles", threads = 128, group = 128, shared = 12288>
kern.func @product(%x: memref<?x32xf32>, %y: memref<?x32xf32>, %z: memref<?x32xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %row = arith.muli %i, %c32 : index
  %a = kern.load %x[%row, %c0] : memref<?x32xf32> -> tensor<32x32xf32>
  %b = kern.load %y[%c0, %c0] : memref<?x32xf32> -> tensor<32x32xf32>
  %e = tensor.empty() : tensor<32x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = linalg.matmul ins(%a, %b : tensor<32x32xf32>, tensor<32x32xf32>)
                     outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  kern.store %c, %z[%row, %c0] : tensor<32x32xf32> -> memref<?x32xf32>
}

// A hint alone decides nothing: this is no rope.
// CHECK-LABEL: kern.func @no_rope
// CHECK-SAME: family = "rows"
// REMARK-DAG: [Missed] emission{{.*}}kernel @no_rope has no skeleton: the body is not the one that its hint describes
kern.func @no_rope(%t: memref<?x64xf32>, %x: memref<?x256xbf16>) grid(%row)
    attributes {kern.family = {kind = "rope", columns = 256 : i64, head_dim = 64 : i64,
                               heads = 4 : i64, element = bf16}} {
  %c0 = arith.constant 0 : index
  %a = kern.load %x[%row, %c0] : memref<?x256xbf16> -> tensor<256xbf16>
  kern.store %a, %x[%row, %c0] : tensor<256xbf16> -> memref<?x256xbf16>
}

// CHECK-LABEL: kern.func @unknown_hint
// CHECK-SAME: family = "rows"
// REMARK-DAG: [Missed] emission{{.*}}kernel @unknown_hint has no skeleton: the hint kern.family is of no known form
kern.func @unknown_hint(%x: memref<?xf32>) grid(%row)
    attributes {kern.family = {kind = "rope"}} {
  %z = arith.constant 0.0 : f32
  memref.store %z, %x[%row] : memref<?xf32>
}
