// RUN: fsdpq-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{argument #0 is a memref, i64 or f64, not 'f32'}}
kern.func @scalar(%x: f32) grid(%i) {
}

// -----

// expected-error@+1 {{argument #0 has elements of f32, f64, bf16, i32, i8 or i64, not 'f16'}}
kern.func @element(%x: memref<4xf16>) grid(%i) {
}

// -----

// expected-error@+1 {{argument #1 may be dynamic in its leading dimension only: 'memref<4x?xf32>'}}
kern.func @dynamic(%x: memref<?xf32>, %y: memref<4x?xf32>) grid(%i) {
}

// -----

// expected-error@+1 {{argument #0 is a row-major memref of one dimension or more in the default memory space}}
kern.func @layout(%x: memref<4x4xf32, strided<[1, 4]>>) grid(%i) {
}

// -----

// expected-error@+1 {{needs the item index, of type index, as the last argument of its block}}
"kern.func"() <{sym_name = "noItem"}> ({
^bb0(%x: memref<4xf32>):
  "kern.return"() : () -> ()
}) : () -> ()

// -----

kern.func @escape(%x: memref<4xf32>) grid(%i) {
  // expected-error@+1 {{uses memref argument #0 of kernel @escape; only kern.load, kern.store, memref.load and memref.store may}}
  %c = memref.cast %x : memref<4xf32> to memref<?xf32>
}

// -----

kern.func @elementMismatch(%x: memref<?xf32>) grid(%i) {
  // expected-error@+1 {{tile and memref differ in element type: 'f64' against 'f32'}}
  %t = kern.load %x[%i] : memref<?xf32> -> tensor<8xf64>
}

// -----

kern.func @indices(%x: memref<?x8xf32>) grid(%i) {
  // expected-error@+1 {{needs an index for each of the 2 dimensions of the memref, got 1}}
  %t = kern.load %x[%i] : memref<?x8xf32> -> tensor<8xf32>
}

// -----

kern.func @rank(%x: memref<?xf32>) grid(%i) {
  // expected-error@+1 {{a tile of 'memref<?xf32>' has 1 to 1 dimensions, not 2}}
  %t = kern.load %x[%i] : memref<?xf32> -> tensor<2x8xf32>
}

// -----

kern.func @bounds(%x: memref<?x8xf32>) grid(%i) {
  %c4 = arith.constant 4 : index
  %t = arith.constant dense<0.0> : tensor<8xf32>
  // expected-error@+1 {{reaches out of dimension 1 of the memref: 8 elements from 4 on, of 8}}
  kern.store %t, %x[%i, %c4] : tensor<8xf32> -> memref<?x8xf32>
}

// -----

func.func @tableSize(%i: i32) {
  // expected-error@+1 {{table has one dimension of a power of two of entries, at most 256, not 'tensor<3xf32>'}}
  %v = kern.lookup %i, dense<0.0> : tensor<3xf32> : i32 -> f32
  return
}

// -----

func.func @tableElement(%i: i32) {
  // expected-error@+1 {{table and result differ in element type: 'f64' against 'f32'}}
  %v = kern.lookup %i, dense<0.0> : tensor<4xf64> : i32 -> f32
  return
}

// -----

func.func @tableShape(%i: vector<4xi32>) {
  // expected-error@+1 {{index and result differ in shape: 'vector<4xi32>' against 'vector<8xf32>'}}
  %v = kern.lookup %i, dense<0.0> : tensor<4xf32> : vector<4xi32> -> vector<8xf32>
  return
}

// -----

func.func @tableIndex() {
  %i = arith.constant 4 : i32
  // expected-error@+1 {{constant index 4 is outside of the table's 4 entries}}
  %v = kern.lookup %i, dense<0.0> : tensor<4xf32> : i32 -> f32
  return
}

// -----

// expected-error@+1 {{unknown schedule key 'vectors'; known keys are vector, register_tile}}
#a = #kern.schedule<vectors = 16>

// -----

// expected-error@+1 {{schedule key 'vector' is given twice}}
#b = #kern.schedule<vector = 16, vector = 8>

// -----

// expected-error@+1 {{vector must be 4, 8 or 16, got 5}}
#c = #kern.schedule<vector = 5>

// -----

// expected-error@+1 {{register_tile must be within [1, 1] and [16, 4], got [17, 2]}}
#d = #kern.schedule<register_tile = [17, 2]>

// -----

// expected-error@+2 {{a block of 96 threads does not consist of whole items of 1 teams of 64 threads}}
kern.func @threads(%x: memref<4xf32>) grid(%i)
    attributes {emission = #kern.emission<family = "rows", threads = 96, group = 64>} {
}

// -----

// expected-error@+2 {{unknown or duplicate struct parameter name: groups}}
kern.func @unknownParameter(%x: memref<4xf32>) grid(%i)
    attributes {emission = #kern.emission<family = "rows", threads = 96, groups = 64>} {
}

// -----

// expected-error@+1 {{kern.family belongs to a kern.func and is a dictionary with a string 'kind', not 7}}
kern.func @family(%x: memref<4xf32>) grid(%i) attributes {kern.family = 7 : i32} {
}
