// RUN: %opt %s | %opt | FileCheck %s
// RUN: %opt %s --mlir-print-op-generic | %opt | FileCheck %s

// Two gathers of a unit are two: the second one is the point.
// RUN: %opt %s --cse | FileCheck %s --check-prefix=CSE

!w = tensor<64x64xf32>
!flat = tensor<2048xf32>

// CHECK-LABEL: tfm.architecture @a
tfm.architecture @a {
  tfm.param @q per_layer : !w {hf = "q.{layer}"}
  tfm.param @k per_layer : !w {hf = "k.{layer}"}
  tfm.param @t per_layer : tensor<8x64xf32> {hf = "t.{layer}", init = "zeros", trainable}

  // CHECK: fsdp.mesh @mesh ranks = 2
  fsdp.mesh @mesh ranks = 2
  // CHECK-NEXT: fsdp.unit @bare [@q]
  fsdp.unit @bare [@q]
  // CHECK-NEXT: fsdp.unit @base [@q, @k] layers = [0, 1]
  // CHECK-SAME: {bytes = 33280 : i64, parts = [#fsdp.part<@q, "data", offset = 0, bytes = 16384>, #fsdp.part<@k, "data", offset = 16384, bytes = 16384>]}
  fsdp.unit @base [@q, @k] layers = [0, 1] {bytes = 33280 : i64, parts = [
    #fsdp.part<@q, "data", offset = 0, bytes = 16384>,
    #fsdp.part<@k, "data", offset = 16384, bytes = 16384>]}
  // CHECK-NEXT: fsdp.unit @trained [@t] layers = [0, 1] {bytes = 4096 : i64, trainable}
  fsdp.unit @trained [@t] layers = [0, 1] {trainable, bytes = 4096 : i64}

  // CHECK-LABEL: tfm.func @gathers
  // CHECK-NEXT: %[[P0:.*]] = fsdp.all_gather_start @base
  // CHECK-NEXT: %[[P1:.*]] = fsdp.all_gather_start @base
  // CHECK-NEXT: %[[G0:.*]] = fsdp.wait %[[P0]]
  // CHECK-NEXT: %[[G1:.*]] = fsdp.wait %[[P1]]
  // CHECK-NEXT: %[[V0:.*]] = fsdp.view %[[G0]] [@q] : tensor<64x64xf32>
  // CHECK-NEXT: %[[V1:.*]] = fsdp.view %[[G1]] [@q, @k] : tensor<128x64xf32>
  // CHECK-NEXT: tfm.emit "a", %[[V0]]
  // CHECK-NEXT: tfm.emit "b", %[[V1]]
  // CHECK-NEXT: fsdp.release %[[G0]]
  // CHECK-NEXT: fsdp.release %[[G1]]
  // CHECK-NEXT: fsdp.gradient_start @trained
  // CHECK-NEXT: fsdp.reduce_scatter_start @trained
  // CHECK-NEXT: fsdp.reduce_sums @trained
  // CHECK-NEXT: fsdp.reduce_replicas @trained
  // CSE-LABEL: tfm.func @gathers
  // CSE-COUNT-2: fsdp.all_gather_start @base
  // CSE-COUNT-2: fsdp.wait
  tfm.func @gathers() {
    %p0 = fsdp.all_gather_start @base
    %p1 = fsdp.all_gather_start @base
    %g0 = fsdp.wait %p0
    %g1 = fsdp.wait %p1
    %v0 = fsdp.view %g0 [@q] : !w
    %v1 = fsdp.view %g1 [@q, @k] : tensor<128x64xf32>
    tfm.emit "a", %v0 : !w
    tfm.emit "b", %v1 : tensor<128x64xf32>
    fsdp.release %g0
    fsdp.release %g1
    fsdp.gradient_start @trained
    fsdp.reduce_scatter_start @trained
    fsdp.reduce_sums @trained
    fsdp.reduce_replicas @trained
    tfm.return
  }

  // CHECK-LABEL: tfm.func @places
  // CHECK-NEXT: fsdp.local @base
  // CHECK-NEXT: fsdp.gradient [@t] : tensor<8x64xf32>
  // CHECK-NEXT: fsdp.flat @trained "data" : tensor<2048xf32>
  // CHECK-NEXT: fsdp.flat @trained "gradient" : tensor<2048xf32>
  // CHECK-NEXT: fsdp.flat @trained "state0" : tensor<2048xf32>
  // CHECK-NEXT: fsdp.flat @trained "state1" : tensor<2048xf32>
  tfm.func @places() {
    %0 = fsdp.local @base
    %1 = fsdp.gradient [@t] : tensor<8x64xf32>
    %2 = fsdp.flat @trained "data" : !flat
    %3 = fsdp.flat @trained "gradient" : !flat
    %4 = fsdp.flat @trained "state0" : !flat
    %5 = fsdp.flat @trained "state1" : !flat
    tfm.return
  }

  // What is kept in the forward pass is released in the backward pass.
  // CHECK-LABEL: tfm.func @kept
  // CHECK-NEXT: %[[P:.*]] = fsdp.all_gather_start @base
  // CHECK-NEXT: %[[G:.*]] = fsdp.wait %[[P]]
  // CHECK-NEXT: fsdp.keep %[[G]]
  // CHECK-NEXT: %[[K:.*]] = fsdp.kept @base
  // CHECK-NEXT: fsdp.release %[[K]]
  tfm.func @kept() {
    %p = fsdp.all_gather_start @base
    %g = fsdp.wait %p
    fsdp.keep %g
    %k = fsdp.kept @base
    fsdp.release %k
    tfm.return
  }

  // CHECK-LABEL: tfm.func @values
  // CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<8xf64>
  // CHECK-NEXT: %[[A:.*]] = fsdp.all_gather %[[V]] : tensor<8xf64> -> tensor<16xf64>
  // CHECK-NEXT: %[[S:.*]] = fsdp.all_reduce %[[A]] : tensor<16xf64>
  // CHECK-NEXT: fsdp.all_reduce %[[S]] {world} : tensor<16xf64>
  // CSE-LABEL: tfm.func @values
  // CSE-COUNT-2: fsdp.all_reduce
  tfm.func @values(%v: tensor<8xf64>) {
    %a = fsdp.all_gather %v : tensor<8xf64> -> tensor<16xf64>
    %s = fsdp.all_reduce %a : tensor<16xf64>
    %t = fsdp.all_reduce %s {world} : tensor<16xf64>
    tfm.return
  }

  // CHECK-LABEL: tfm.func @load
  // CHECK-NEXT: fsdp.whole @base : tensor<33280xi8>
  // CHECK-NEXT: fsdp.part_of @q "data" pieces = 4 : tensor<16x64xf32>
  // CHECK-NEXT: fsdp.scratch "scales" pieces = 4 : tensor<64xf32>
  // CHECK-NEXT: fsdp.store @base
  tfm.func @load() {
    %0 = fsdp.whole @base : tensor<33280xi8>
    %1 = fsdp.part_of @q "data" pieces = 4 : tensor<16x64xf32>
    %2 = fsdp.scratch "scales" pieces = 4 : tensor<64xf32>
    fsdp.store @base
    tfm.return
  }
}

// CHECK: fsdp.mesh @groups ranks = 4 shards = 2 {deterministic}
fsdp.mesh @groups ranks = 4 shards = 2 {deterministic}
