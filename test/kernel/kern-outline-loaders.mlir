// RUN: %opt %s --split-input-file --kern-outline-loaders | FileCheck %s

// A unit is loaded into a buffer of its own that starts empty, and stored from there;
// its plain parameters are copied into it. One that no checkpoint holds has no
// loader, nor has a unit of such ones.
//
// CHECK-LABEL: tfm.architecture @plain {
// CHECK-LABEL: tfm.func @load.begin.layers.base(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.whole @layers.base : tensor<512xi8>
// CHECK-NEXT:   %[[V1:.+]] = kern.fill into %[[V0]] : tensor<512xi8>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.store.layers.base(
// CHECK-NEXT:   fsdp.store @layers.base
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.w(
// CHECK-SAME: %[[ARG0:.+]]: tensor<128xf32> {tfm.port = "staging"}) {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @w "data" pieces = 1 : tensor<128xf32>
// CHECK-NEXT:   %[[V1:.+]] = kern.copy %[[ARG0]] into %[[V0]] : tensor<128xf32> into tensor<128xf32>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.begin.norm.base(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.whole @norm.base : tensor<256xi8>
// CHECK-NEXT:   %[[V1:.+]] = kern.fill into %[[V0]] : tensor<256xi8>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.store.norm.base(
// CHECK-NEXT:   fsdp.store @norm.base
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.norm(
// CHECK-SAME: %[[ARG0:.+]]: tensor<64xf32> {tfm.port = "staging"}) {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @norm "data" pieces = 1 : tensor<64xf32>
// CHECK-NEXT:   %[[V1:.+]] = kern.copy %[[ARG0]] into %[[V0]] : tensor<64xf32> into tensor<64xf32>
// CHECK-NEXT:   tfm.return
// CHECK-NOT: tfm.func
tfm.architecture @plain {
  tfm.param @norm : tensor<64xf32> {hf = "norm.weight"}
  tfm.param @w per_layer : tensor<8x16xf32> {hf = "w.{layer}"}
  tfm.param @a : tensor<8x16xf32> {hf = "a", init = "zeros", trainable}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @layers.base [@w] layers = [0, 1] {bytes = 512 : i64}
  fsdp.unit @norm.base [@norm] {bytes = 256 : i64}
  fsdp.unit @a.trained [@a] {trainable, bytes = 512 : i64}
}

// -----

// One scale a block: codes and scales in one kernel. 5 x 30 = 150 numbers are
// three blocks of 64, the last one short; two codes a byte.
//
// CHECK-LABEL: tfm.architecture @single {
// CHECK-LABEL: tfm.func @load.begin.layers.base(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.whole @layers.base : tensor<256xi8>
// CHECK-NEXT:   %[[V1:.+]] = kern.fill into %[[V0]] : tensor<256xi8>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.store.layers.base(
// CHECK-NEXT:   fsdp.store @layers.base
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.q(
// CHECK-SAME: %[[ARG0:.+]]: tensor<150xf32> {tfm.port = "staging"}) {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @q "codes" pieces = 1 : tensor<75xi8>
// CHECK-NEXT:   %[[V1:.+]] = fsdp.part_of @q "absmax" pieces = 1 : tensor<3xf32>
// CHECK-NEXT:   %[[V2:.+]]:2 = kern.call @quantize_nf4_b64_n150(%[[ARG0]]) into(%[[V0]], %[[V1]]) grid = <add = 3, cap = 3> {extents = [], scalars = []} : (tensor<150xf32>) into(tensor<75xi8>, tensor<3xf32>)
// CHECK-NEXT:   tfm.return
// CHECK-NOT: tfm.func

!q = tensor<5x30x!qt.nf4<block = 64, scale = f32>>
tfm.architecture @single {
  tfm.param @q per_layer : !q {hf = "q.{layer}"}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @layers.base [@q] layers = [0] {bytes = 256 : i64}
}

// -----

// Scales that are quantised themselves wait in scratch until their mean over the
// whole tensor is known, which ranks compute together from their pieces' sums (and
// set these to zero for the next parameter); then they are quantised in blocks of
// 256. The mean is the parameter's offset. 512 x 64 / 64 scales are two blocks.
//
// CHECK-LABEL: tfm.architecture @nested {
// CHECK-LABEL: tfm.func @load.begin.layers.base(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.whole @layers.base : tensor<17408xi8>
// CHECK-NEXT:   %[[V1:.+]] = kern.fill into %[[V0]] : tensor<17408xi8>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.store.layers.base(
// CHECK-NEXT:   fsdp.store @layers.base
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.q(
// CHECK-SAME: %[[ARG0:.+]]: tensor<32768xf32> {tfm.port = "staging"}) {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @q "codes" pieces = 1 : tensor<16384xi8>
// CHECK-NEXT:   %[[V1:.+]] = fsdp.scratch "scales" pieces = 1 : tensor<512xf32>
// CHECK-NEXT:   %[[V2:.+]]:2 = kern.call @quantize_nf4_b64_n32768(%[[ARG0]]) into(%[[V0]], %[[V1]]) grid = <add = 512, cap = 512> {extents = [], scalars = []} : (tensor<32768xf32>) into(tensor<16384xi8>, tensor<512xf32>)
// CHECK-NEXT:   %[[V3:.+]] = fsdp.scratch "sums" pieces = 1 : tensor<1xf64>
// CHECK-NEXT:   %[[V4:.+]] = kern.call @scale_sum_n512(%[[V2]]#1) into(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<512xf32>) into(tensor<1xf64>)
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.mean.q(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.scratch "sums" pieces = 1 : tensor<1xf64>
// CHECK-NEXT:   %[[V1:.+]] = fsdp.all_reduce %[[V0]] {world} : tensor<1xf64>
// CHECK-NEXT:   %[[V2:.+]] = fsdp.scratch "mean" pieces = 1 : tensor<1xf32>
// CHECK-NEXT:   %[[V3:.+]] = kern.call @scale_mean_p1_n512(%[[V1]]) into(%[[V2]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<1xf64>) into(tensor<1xf32>)
// CHECK-NEXT:   %[[V4:.+]] = kern.fill into %[[V1]] : tensor<1xf64>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.scales.q(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @q "absmax_u8" pieces = 1 : tensor<512xi8>
// CHECK-NEXT:   %[[V1:.+]] = fsdp.part_of @q "nested_absmax" pieces = 1 : tensor<2xf32>
// CHECK-NEXT:   %[[V2:.+]] = fsdp.scratch "scales" pieces = 1 : tensor<512xf32>
// CHECK-NEXT:   %[[V3:.+]] = fsdp.scratch "mean" pieces = 1 : tensor<1xf32>
// CHECK-NEXT:   %[[V4:.+]]:2 = kern.call @quantize_scales_b256_n512(%[[V2]], %[[V3]]) into(%[[V0]], %[[V1]]) grid = <add = 2, cap = 2> {extents = [], scalars = []} : (tensor<512xf32>, tensor<1xf32>) into(tensor<512xi8>, tensor<2xf32>)
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.offset.q(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @q "offset" pieces = 1 : tensor<1xf32>
// CHECK-NEXT:   %[[V1:.+]] = fsdp.scratch "mean" pieces = 1 : tensor<1xf32>
// CHECK-NEXT:   %[[V2:.+]] = kern.copy %[[V1]] into %[[V0]] : tensor<1xf32> into tensor<1xf32>
// CHECK-NEXT:   tfm.return
// CHECK-NOT: tfm.func

!q = tensor<512x64x!qt.nf4<block = 64, scale = dq<256>>>
tfm.architecture @nested {
  tfm.param @q per_layer : !q {hf = "q.{layer}"}
  fsdp.mesh @mesh ranks = 1
  fsdp.unit @layers.base [@q] layers = [0] {bytes = 17408 : i64}
}

// -----

// Large parameters come in pieces of equal size, of 4194304 numbers at most, that
// are whole blocks of nested scales.
//
// CHECK-LABEL: tfm.architecture @pieces {
// CHECK-LABEL: tfm.func @load.begin.layers.base(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.whole @layers.base : tensor<6488064xi8>
// CHECK-NEXT:   %[[V1:.+]] = kern.fill into %[[V0]] : tensor<6488064xi8>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.store.layers.base(
// CHECK-NEXT:   fsdp.store @layers.base
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.q(
// CHECK-SAME: %[[ARG0:.+]]: tensor<4194304xf32> {tfm.port = "staging"}) {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @q "codes" pieces = 3 : tensor<2097152xi8>
// CHECK-NEXT:   %[[V1:.+]] = fsdp.scratch "scales" pieces = 3 : tensor<65536xf32>
// CHECK-NEXT:   %[[V2:.+]]:2 = kern.call @quantize_nf4_b64_n4194304(%[[ARG0]]) into(%[[V0]], %[[V1]]) grid = <add = 65536, cap = 65536> {extents = [], scalars = []} : (tensor<4194304xf32>) into(tensor<2097152xi8>, tensor<65536xf32>)
// CHECK-NEXT:   %[[V3:.+]] = fsdp.scratch "sums" pieces = 3 : tensor<1xf64>
// CHECK-NEXT:   %[[V4:.+]] = kern.call @scale_sum_n65536(%[[V2]]#1) into(%[[V3]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<65536xf32>) into(tensor<1xf64>)
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.mean.q(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.scratch "sums" pieces = 1 : tensor<3xf64>
// CHECK-NEXT:   %[[V1:.+]] = fsdp.all_reduce %[[V0]] {world} : tensor<3xf64>
// CHECK-NEXT:   %[[V2:.+]] = fsdp.scratch "mean" pieces = 1 : tensor<1xf32>
// CHECK-NEXT:   %[[V3:.+]] = kern.call @scale_mean_p3_n196608(%[[V1]]) into(%[[V2]]) grid = <add = 1, cap = 1> {extents = [], scalars = []} : (tensor<3xf64>) into(tensor<1xf32>)
// CHECK-NEXT:   %[[V4:.+]] = kern.fill into %[[V1]] : tensor<3xf64>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.scales.q(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @q "absmax_u8" pieces = 3 : tensor<65536xi8>
// CHECK-NEXT:   %[[V1:.+]] = fsdp.part_of @q "nested_absmax" pieces = 3 : tensor<256xf32>
// CHECK-NEXT:   %[[V2:.+]] = fsdp.scratch "scales" pieces = 3 : tensor<65536xf32>
// CHECK-NEXT:   %[[V3:.+]] = fsdp.scratch "mean" pieces = 1 : tensor<1xf32>
// CHECK-NEXT:   %[[V4:.+]]:2 = kern.call @quantize_scales_b256_n65536(%[[V2]], %[[V3]]) into(%[[V0]], %[[V1]]) grid = <add = 256, cap = 256> {extents = [], scalars = []} : (tensor<65536xf32>, tensor<1xf32>) into(tensor<65536xi8>, tensor<256xf32>)
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.offset.q(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @q "offset" pieces = 1 : tensor<1xf32>
// CHECK-NEXT:   %[[V1:.+]] = fsdp.scratch "mean" pieces = 1 : tensor<1xf32>
// CHECK-NEXT:   %[[V2:.+]] = kern.copy %[[V1]] into %[[V0]] : tensor<1xf32> into tensor<1xf32>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.begin.w.base(
// CHECK-NEXT:   %[[V0:.+]] = fsdp.whole @w.base : tensor<67108864xi8>
// CHECK-NEXT:   %[[V1:.+]] = kern.fill into %[[V0]] : tensor<67108864xi8>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.store.w.base(
// CHECK-NEXT:   fsdp.store @w.base
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.w(
// CHECK-SAME: %[[ARG0:.+]]: tensor<3145728xf32> {tfm.port = "staging"}) {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @w "data" pieces = 2 : tensor<3145728xf32>
// CHECK-NEXT:   %[[V1:.+]] = kern.copy %[[ARG0]] into %[[V0]] : tensor<3145728xf32> into tensor<3145728xf32>
// CHECK-NEXT:   tfm.return
// CHECK-LABEL: tfm.func @load.single(
// CHECK-SAME: %[[ARG0:.+]]: tensor<4194304xf32> {tfm.port = "staging"}) {
// CHECK-NEXT:   %[[V0:.+]] = fsdp.part_of @single "codes" pieces = 3 : tensor<2097152xi8>
// CHECK-NEXT:   %[[V1:.+]] = fsdp.part_of @single "absmax" pieces = 3 : tensor<65536xf32>
// CHECK-NEXT:   %[[V2:.+]]:2 = kern.call @quantize_nf4_b64_n4194304_0(%[[ARG0]]) into(%[[V0]], %[[V1]]) grid = <add = 65536, cap = 65536> {extents = [], scalars = []} : (tensor<4194304xf32>) into(tensor<2097152xi8>, tensor<65536xf32>)
// CHECK-NEXT:   tfm.return
// CHECK-NOT: tfm.func

!q = tensor<12288x1024x!qt.nf4<block = 64, scale = dq<256>>>
tfm.architecture @pieces {
  tfm.param @q per_layer : !q {hf = "q.{layer}"}
  tfm.param @w : tensor<6291456xf32> {hf = "w"}
  tfm.param @single : tensor<4194304x3x!qt.nf4<block = 64, scale = f32>> {hf = "single"}
  fsdp.mesh @mesh ranks = 2
  fsdp.unit @layers.base [@q] layers = [0] {bytes = 6488064 : i64}
  fsdp.unit @w.base [@w, @single] {bytes = 67108864 : i64}
}
