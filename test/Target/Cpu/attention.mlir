// RUN: fsdpq-opt %s --kern-to-llvm | FileCheck %s
//
// Also the body that the unit test CpuKernels runs.

#line = affine_map<(d0) -> (d0)>
#matrix = affine_map<(d0, d1) -> (d0, d1)>
#inner = affine_map<(d0, d1) -> (d1)>
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-DAG: llvm.func @attention_64(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.func @attention_80(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.func @attention_16_f64(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)

// One work item: 32 queries of a head. Lanes are queries: scores and sums are
// kept transposed. Keys of a query i are those j <= i of its segment.
kern.func @attention_64(%q: memref<?x128xf32>, %k: memref<?x128xf32>, %v: memref<?x128xf32>,
                  %segment: memref<?xi32>, %out: memref<?x128xf32>, %lse: memref<?x2xf32>) grid(%item) {
  %c0 = arith.constant 0 : index
  %heads = arith.constant 2 : index
  %size = arith.constant 64 : index
  %tile = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -1.0e30 : f32
  %scale = arith.constant 0.125 : f32
  %head = arith.remui %item, %heads : index
  %tileIndex = arith.divui %item, %heads : index
  %i0 = arith.muli %tileIndex, %tile : index
  %end = arith.addi %i0, %tile : index
  %column = arith.muli %head, %size : index
  %starts = kern.load %segment[%i0] : memref<?xi32> -> tensor<32xi32>
  %start32 = memref.load %segment[%i0] : memref<?xi32>
  %start = arith.index_cast %start32 : i32 to index
  %startTile = arith.divui %start, %tile : index
  %begin = arith.muli %startTile, %tile : index

  %qs = kern.load %q[%i0, %column] : memref<?x128xf32> -> tensor<32x64xf32>
  %eq = tensor.empty() : tensor<64x32xf32>
  %qt = linalg.transpose ins(%qs : tensor<32x64xf32>) outs(%eq : tensor<64x32xf32>) permutation = [1, 0]
  %qScaled = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%qt : tensor<64x32xf32>) outs(%eq : tensor<64x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %scale : f32
    linalg.yield %r : f32
  } -> tensor<64x32xf32>

  %eRow = tensor.empty() : tensor<32xf32>
  %m0 = linalg.fill ins(%lowest : f32) outs(%eRow : tensor<32xf32>) -> tensor<32xf32>
  %l0 = linalg.fill ins(%zero : f32) outs(%eRow : tensor<32xf32>) -> tensor<32xf32>
  %a0 = linalg.fill ins(%zero : f32) outs(%eq : tensor<64x32xf32>) -> tensor<64x32xf32>
  %eScore = tensor.empty() : tensor<32x32xf32>
  %m, %l, %acc = scf.for %j0 = %begin to %end step %tile
      iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (tensor<32xf32>, tensor<32xf32>, tensor<64x32xf32>) {
    %ks = kern.load %k[%j0, %column] : memref<?x128xf32> -> tensor<32x64xf32>
    %vs = kern.load %v[%j0, %column] : memref<?x128xf32> -> tensor<32x64xf32>
    %s0 = linalg.fill ins(%zero : f32) outs(%eScore : tensor<32x32xf32>) -> tensor<32x32xf32>
    %s = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%ks, %qScaled : tensor<32x64xf32>, tensor<64x32xf32>) outs(%s0 : tensor<32x32xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b fastmath<contract> : f32
      %r = arith.addf %c, %p fastmath<contract> : f32
      linalg.yield %r : f32
    } -> tensor<32x32xf32>
    %masked = linalg.generic {indexing_maps = [#matrix, #inner, #matrix], iterator_types = ["parallel", "parallel"]}
        ins(%s, %starts : tensor<32x32xf32>, tensor<32xi32>) outs(%eScore : tensor<32x32xf32>) {
    ^bb0(%a: f32, %first: i32, %o: f32):
      %dj = linalg.index 0 : index
      %di = linalg.index 1 : index
      %j = arith.addi %j0, %dj : index
      %i = arith.addi %i0, %di : index
      %ji = arith.index_cast %j : index to i32
      %ii = arith.index_cast %i : index to i32
      %causal = arith.cmpi sle, %ji, %ii : i32
      %inside = arith.cmpi sge, %ji, %first : i32
      %visible = arith.andi %causal, %inside : i1
      %r = arith.select %visible, %a, %lowest : f32
      linalg.yield %r : f32
    } -> tensor<32x32xf32>
    %mn = linalg.generic {indexing_maps = [#matrix, #inner], iterator_types = ["reduction", "parallel"]}
        ins(%masked : tensor<32x32xf32>) outs(%mi : tensor<32xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.maxnumf %a, %o fastmath<nnan,nsz> : f32
      linalg.yield %r : f32
    } -> tensor<32xf32>
    %alpha = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
        ins(%mi, %mn : tensor<32xf32>, tensor<32xf32>) outs(%eRow : tensor<32xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %d = arith.subf %a, %b : f32
      %r = math.exp %d : f32
      linalg.yield %r : f32
    } -> tensor<32xf32>
    %p = linalg.generic {indexing_maps = [#matrix, #inner, #matrix], iterator_types = ["parallel", "parallel"]}
        ins(%masked, %mn : tensor<32x32xf32>, tensor<32xf32>) outs(%eScore : tensor<32x32xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %d = arith.subf %a, %b : f32
      %r = math.exp %d : f32
      linalg.yield %r : f32
    } -> tensor<32x32xf32>
    %lScaled = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
        ins(%li, %alpha : tensor<32xf32>, tensor<32xf32>) outs(%eRow : tensor<32xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %r = arith.mulf %a, %b : f32
      linalg.yield %r : f32
    } -> tensor<32xf32>
    %ln = linalg.generic {indexing_maps = [#matrix, #inner], iterator_types = ["reduction", "parallel"]}
        ins(%p : tensor<32x32xf32>) outs(%lScaled : tensor<32xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.addf %a, %o : f32
      linalg.yield %r : f32
    } -> tensor<32xf32>
    %aScaled = linalg.generic {indexing_maps = [#inner, #matrix], iterator_types = ["parallel", "parallel"]}
        ins(%alpha : tensor<32xf32>) outs(%ai : tensor<64x32xf32>) {
    ^bb0(%b: f32, %o: f32):
      %r = arith.mulf %o, %b : f32
      linalg.yield %r : f32
    } -> tensor<64x32xf32>
    %an = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%vs, %p : tensor<32x64xf32>, tensor<32x32xf32>) outs(%aScaled : tensor<64x32xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %x = arith.mulf %a, %b fastmath<contract> : f32
      %r = arith.addf %c, %x fastmath<contract> : f32
      linalg.yield %r : f32
    } -> tensor<64x32xf32>
    scf.yield %mn, %ln, %an : tensor<32xf32>, tensor<32xf32>, tensor<64x32xf32>
  }

  %ot = linalg.generic {indexing_maps = [#matrix, #inner, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%acc, %l : tensor<64x32xf32>, tensor<32xf32>) outs(%eq : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<64x32xf32>
  %eo = tensor.empty() : tensor<32x64xf32>
  %os = linalg.transpose ins(%ot : tensor<64x32xf32>) outs(%eo : tensor<32x64xf32>) permutation = [1, 0]
  kern.store %os, %out[%i0, %column] : tensor<32x64xf32> -> memref<?x128xf32>
  %logSums = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      ins(%m, %l : tensor<32xf32>, tensor<32xf32>) outs(%eRow : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = math.log %b : f32
    %r = arith.addf %a, %x : f32
    linalg.yield %r : f32
  } -> tensor<32xf32>
  %asColumn = tensor.expand_shape %logSums [[0, 1]] output_shape [32, 1] : tensor<32xf32> into tensor<32x1xf32>
  kern.store %asColumn, %lse[%i0, %head] : tensor<32x1xf32> -> memref<?x2xf32>
}


// One work item: 32 queries of a head. Lanes are queries: scores and sums are
// kept transposed. Keys of a query i are those j <= i of its segment.
kern.func @attention_80(%q: memref<?x80xf32>, %k: memref<?x80xf32>, %v: memref<?x80xf32>,
                  %segment: memref<?xi32>, %out: memref<?x80xf32>, %lse: memref<?x1xf32>) grid(%item) {
  %c0 = arith.constant 0 : index
  %heads = arith.constant 1 : index
  %size = arith.constant 80 : index
  %tile = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -1.0e30 : f32
  %scale = arith.constant 0.11180339887498948 : f32
  %head = arith.remui %item, %heads : index
  %tileIndex = arith.divui %item, %heads : index
  %i0 = arith.muli %tileIndex, %tile : index
  %end = arith.addi %i0, %tile : index
  %column = arith.muli %head, %size : index
  %starts = kern.load %segment[%i0] : memref<?xi32> -> tensor<32xi32>
  %start32 = memref.load %segment[%i0] : memref<?xi32>
  %start = arith.index_cast %start32 : i32 to index
  %startTile = arith.divui %start, %tile : index
  %begin = arith.muli %startTile, %tile : index

  %qs = kern.load %q[%i0, %column] : memref<?x80xf32> -> tensor<32x80xf32>
  %eq = tensor.empty() : tensor<80x32xf32>
  %qt = linalg.transpose ins(%qs : tensor<32x80xf32>) outs(%eq : tensor<80x32xf32>) permutation = [1, 0]
  %qScaled = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%qt : tensor<80x32xf32>) outs(%eq : tensor<80x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %scale : f32
    linalg.yield %r : f32
  } -> tensor<80x32xf32>

  %eRow = tensor.empty() : tensor<32xf32>
  %m0 = linalg.fill ins(%lowest : f32) outs(%eRow : tensor<32xf32>) -> tensor<32xf32>
  %l0 = linalg.fill ins(%zero : f32) outs(%eRow : tensor<32xf32>) -> tensor<32xf32>
  %a0 = linalg.fill ins(%zero : f32) outs(%eq : tensor<80x32xf32>) -> tensor<80x32xf32>
  %eScore = tensor.empty() : tensor<32x32xf32>
  %m, %l, %acc = scf.for %j0 = %begin to %end step %tile
      iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (tensor<32xf32>, tensor<32xf32>, tensor<80x32xf32>) {
    %ks = kern.load %k[%j0, %column] : memref<?x80xf32> -> tensor<32x80xf32>
    %vs = kern.load %v[%j0, %column] : memref<?x80xf32> -> tensor<32x80xf32>
    %s0 = linalg.fill ins(%zero : f32) outs(%eScore : tensor<32x32xf32>) -> tensor<32x32xf32>
    %s = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%ks, %qScaled : tensor<32x80xf32>, tensor<80x32xf32>) outs(%s0 : tensor<32x32xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b fastmath<contract> : f32
      %r = arith.addf %c, %p fastmath<contract> : f32
      linalg.yield %r : f32
    } -> tensor<32x32xf32>
    %masked = linalg.generic {indexing_maps = [#matrix, #inner, #matrix], iterator_types = ["parallel", "parallel"]}
        ins(%s, %starts : tensor<32x32xf32>, tensor<32xi32>) outs(%eScore : tensor<32x32xf32>) {
    ^bb0(%a: f32, %first: i32, %o: f32):
      %dj = linalg.index 0 : index
      %di = linalg.index 1 : index
      %j = arith.addi %j0, %dj : index
      %i = arith.addi %i0, %di : index
      %ji = arith.index_cast %j : index to i32
      %ii = arith.index_cast %i : index to i32
      %causal = arith.cmpi sle, %ji, %ii : i32
      %inside = arith.cmpi sge, %ji, %first : i32
      %visible = arith.andi %causal, %inside : i1
      %r = arith.select %visible, %a, %lowest : f32
      linalg.yield %r : f32
    } -> tensor<32x32xf32>
    %mn = linalg.generic {indexing_maps = [#matrix, #inner], iterator_types = ["reduction", "parallel"]}
        ins(%masked : tensor<32x32xf32>) outs(%mi : tensor<32xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.maxnumf %a, %o fastmath<nnan,nsz> : f32
      linalg.yield %r : f32
    } -> tensor<32xf32>
    %alpha = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
        ins(%mi, %mn : tensor<32xf32>, tensor<32xf32>) outs(%eRow : tensor<32xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %d = arith.subf %a, %b : f32
      %r = math.exp %d : f32
      linalg.yield %r : f32
    } -> tensor<32xf32>
    %p = linalg.generic {indexing_maps = [#matrix, #inner, #matrix], iterator_types = ["parallel", "parallel"]}
        ins(%masked, %mn : tensor<32x32xf32>, tensor<32xf32>) outs(%eScore : tensor<32x32xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %d = arith.subf %a, %b : f32
      %r = math.exp %d : f32
      linalg.yield %r : f32
    } -> tensor<32x32xf32>
    %lScaled = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
        ins(%li, %alpha : tensor<32xf32>, tensor<32xf32>) outs(%eRow : tensor<32xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %r = arith.mulf %a, %b : f32
      linalg.yield %r : f32
    } -> tensor<32xf32>
    %ln = linalg.generic {indexing_maps = [#matrix, #inner], iterator_types = ["reduction", "parallel"]}
        ins(%p : tensor<32x32xf32>) outs(%lScaled : tensor<32xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.addf %a, %o : f32
      linalg.yield %r : f32
    } -> tensor<32xf32>
    %aScaled = linalg.generic {indexing_maps = [#inner, #matrix], iterator_types = ["parallel", "parallel"]}
        ins(%alpha : tensor<32xf32>) outs(%ai : tensor<80x32xf32>) {
    ^bb0(%b: f32, %o: f32):
      %r = arith.mulf %o, %b : f32
      linalg.yield %r : f32
    } -> tensor<80x32xf32>
    %an = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%vs, %p : tensor<32x80xf32>, tensor<32x32xf32>) outs(%aScaled : tensor<80x32xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %x = arith.mulf %a, %b fastmath<contract> : f32
      %r = arith.addf %c, %x fastmath<contract> : f32
      linalg.yield %r : f32
    } -> tensor<80x32xf32>
    scf.yield %mn, %ln, %an : tensor<32xf32>, tensor<32xf32>, tensor<80x32xf32>
  }

  %ot = linalg.generic {indexing_maps = [#matrix, #inner, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%acc, %l : tensor<80x32xf32>, tensor<32xf32>) outs(%eq : tensor<80x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<80x32xf32>
  %eo = tensor.empty() : tensor<32x80xf32>
  %os = linalg.transpose ins(%ot : tensor<80x32xf32>) outs(%eo : tensor<32x80xf32>) permutation = [1, 0]
  kern.store %os, %out[%i0, %column] : tensor<32x80xf32> -> memref<?x80xf32>
  %logSums = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      ins(%m, %l : tensor<32xf32>, tensor<32xf32>) outs(%eRow : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = math.log %b : f32
    %r = arith.addf %a, %x : f32
    linalg.yield %r : f32
  } -> tensor<32xf32>
  %asColumn = tensor.expand_shape %logSums [[0, 1]] output_shape [32, 1] : tensor<32xf32> into tensor<32x1xf32>
  kern.store %asColumn, %lse[%i0, %head] : tensor<32x1xf32> -> memref<?x1xf32>
}


// One work item: 32 queries of a head. Lanes are queries: scores and sums are
// kept transposed. Keys of a query i are those j <= i of its segment.
kern.func @attention_16_f64(%q: memref<?x32xf64>, %k: memref<?x32xf64>, %v: memref<?x32xf64>,
                  %segment: memref<?xi32>, %out: memref<?x32xf64>, %lse: memref<?x2xf64>) grid(%item) {
  %c0 = arith.constant 0 : index
  %heads = arith.constant 2 : index
  %size = arith.constant 16 : index
  %tile = arith.constant 32 : index
  %zero = arith.constant 0.0 : f64
  %lowest = arith.constant -1.0e30 : f64
  %scale = arith.constant 0.25 : f64
  %head = arith.remui %item, %heads : index
  %tileIndex = arith.divui %item, %heads : index
  %i0 = arith.muli %tileIndex, %tile : index
  %end = arith.addi %i0, %tile : index
  %column = arith.muli %head, %size : index
  %starts = kern.load %segment[%i0] : memref<?xi32> -> tensor<32xi32>
  %start32 = memref.load %segment[%i0] : memref<?xi32>
  %start = arith.index_cast %start32 : i32 to index
  %startTile = arith.divui %start, %tile : index
  %begin = arith.muli %startTile, %tile : index

  %qs = kern.load %q[%i0, %column] : memref<?x32xf64> -> tensor<32x16xf64>
  %eq = tensor.empty() : tensor<16x32xf64>
  %qt = linalg.transpose ins(%qs : tensor<32x16xf64>) outs(%eq : tensor<16x32xf64>) permutation = [1, 0]
  %qScaled = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%qt : tensor<16x32xf64>) outs(%eq : tensor<16x32xf64>) {
  ^bb0(%a: f64, %o: f64):
    %r = arith.mulf %a, %scale : f64
    linalg.yield %r : f64
  } -> tensor<16x32xf64>

  %eRow = tensor.empty() : tensor<32xf64>
  %m0 = linalg.fill ins(%lowest : f64) outs(%eRow : tensor<32xf64>) -> tensor<32xf64>
  %l0 = linalg.fill ins(%zero : f64) outs(%eRow : tensor<32xf64>) -> tensor<32xf64>
  %a0 = linalg.fill ins(%zero : f64) outs(%eq : tensor<16x32xf64>) -> tensor<16x32xf64>
  %eScore = tensor.empty() : tensor<32x32xf64>
  %m, %l, %acc = scf.for %j0 = %begin to %end step %tile
      iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (tensor<32xf64>, tensor<32xf64>, tensor<16x32xf64>) {
    %ks = kern.load %k[%j0, %column] : memref<?x32xf64> -> tensor<32x16xf64>
    %vs = kern.load %v[%j0, %column] : memref<?x32xf64> -> tensor<32x16xf64>
    %s0 = linalg.fill ins(%zero : f64) outs(%eScore : tensor<32x32xf64>) -> tensor<32x32xf64>
    %s = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%ks, %qScaled : tensor<32x16xf64>, tensor<16x32xf64>) outs(%s0 : tensor<32x32xf64>) {
    ^bb0(%a: f64, %b: f64, %c: f64):
      %p = arith.mulf %a, %b fastmath<contract> : f64
      %r = arith.addf %c, %p fastmath<contract> : f64
      linalg.yield %r : f64
    } -> tensor<32x32xf64>
    %masked = linalg.generic {indexing_maps = [#matrix, #inner, #matrix], iterator_types = ["parallel", "parallel"]}
        ins(%s, %starts : tensor<32x32xf64>, tensor<32xi32>) outs(%eScore : tensor<32x32xf64>) {
    ^bb0(%a: f64, %first: i32, %o: f64):
      %dj = linalg.index 0 : index
      %di = linalg.index 1 : index
      %j = arith.addi %j0, %dj : index
      %i = arith.addi %i0, %di : index
      %ji = arith.index_cast %j : index to i32
      %ii = arith.index_cast %i : index to i32
      %causal = arith.cmpi sle, %ji, %ii : i32
      %inside = arith.cmpi sge, %ji, %first : i32
      %visible = arith.andi %causal, %inside : i1
      %r = arith.select %visible, %a, %lowest : f64
      linalg.yield %r : f64
    } -> tensor<32x32xf64>
    %mn = linalg.generic {indexing_maps = [#matrix, #inner], iterator_types = ["reduction", "parallel"]}
        ins(%masked : tensor<32x32xf64>) outs(%mi : tensor<32xf64>) {
    ^bb0(%a: f64, %o: f64):
      %r = arith.maxnumf %a, %o fastmath<nnan,nsz> : f64
      linalg.yield %r : f64
    } -> tensor<32xf64>
    %alpha = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
        ins(%mi, %mn : tensor<32xf64>, tensor<32xf64>) outs(%eRow : tensor<32xf64>) {
    ^bb0(%a: f64, %b: f64, %o: f64):
      %d = arith.subf %a, %b : f64
      %r = math.exp %d : f64
      linalg.yield %r : f64
    } -> tensor<32xf64>
    %p = linalg.generic {indexing_maps = [#matrix, #inner, #matrix], iterator_types = ["parallel", "parallel"]}
        ins(%masked, %mn : tensor<32x32xf64>, tensor<32xf64>) outs(%eScore : tensor<32x32xf64>) {
    ^bb0(%a: f64, %b: f64, %o: f64):
      %d = arith.subf %a, %b : f64
      %r = math.exp %d : f64
      linalg.yield %r : f64
    } -> tensor<32x32xf64>
    %lScaled = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
        ins(%li, %alpha : tensor<32xf64>, tensor<32xf64>) outs(%eRow : tensor<32xf64>) {
    ^bb0(%a: f64, %b: f64, %o: f64):
      %r = arith.mulf %a, %b : f64
      linalg.yield %r : f64
    } -> tensor<32xf64>
    %ln = linalg.generic {indexing_maps = [#matrix, #inner], iterator_types = ["reduction", "parallel"]}
        ins(%p : tensor<32x32xf64>) outs(%lScaled : tensor<32xf64>) {
    ^bb0(%a: f64, %o: f64):
      %r = arith.addf %a, %o : f64
      linalg.yield %r : f64
    } -> tensor<32xf64>
    %aScaled = linalg.generic {indexing_maps = [#inner, #matrix], iterator_types = ["parallel", "parallel"]}
        ins(%alpha : tensor<32xf64>) outs(%ai : tensor<16x32xf64>) {
    ^bb0(%b: f64, %o: f64):
      %r = arith.mulf %o, %b : f64
      linalg.yield %r : f64
    } -> tensor<16x32xf64>
    %an = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%vs, %p : tensor<32x16xf64>, tensor<32x32xf64>) outs(%aScaled : tensor<16x32xf64>) {
    ^bb0(%a: f64, %b: f64, %c: f64):
      %x = arith.mulf %a, %b fastmath<contract> : f64
      %r = arith.addf %c, %x fastmath<contract> : f64
      linalg.yield %r : f64
    } -> tensor<16x32xf64>
    scf.yield %mn, %ln, %an : tensor<32xf64>, tensor<32xf64>, tensor<16x32xf64>
  }

  %ot = linalg.generic {indexing_maps = [#matrix, #inner, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%acc, %l : tensor<16x32xf64>, tensor<32xf64>) outs(%eq : tensor<16x32xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %r = arith.divf %a, %b : f64
    linalg.yield %r : f64
  } -> tensor<16x32xf64>
  %eo = tensor.empty() : tensor<32x16xf64>
  %os = linalg.transpose ins(%ot : tensor<16x32xf64>) outs(%eo : tensor<32x16xf64>) permutation = [1, 0]
  kern.store %os, %out[%i0, %column] : tensor<32x16xf64> -> memref<?x32xf64>
  %logSums = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      ins(%m, %l : tensor<32xf64>, tensor<32xf64>) outs(%eRow : tensor<32xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %x = math.log %b : f64
    %r = arith.addf %a, %x : f64
    linalg.yield %r : f64
  } -> tensor<32xf64>
  %asColumn = tensor.expand_shape %logSums [[0, 1]] output_shape [32, 1] : tensor<32xf64> into tensor<32x1xf64>
  kern.store %asColumn, %lse[%i0, %head] : tensor<32x1xf64> -> memref<?x2xf64>
}
