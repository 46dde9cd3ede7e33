// RUN: %opt %s --split-input-file --kern-outline-loaders | FileCheck %s

// A plain parameter is copied. One that no checkpoint holds has no loader.
//
// CHECK-LABEL: tfm.architecture @plain {
// CHECK-LABEL: tfm.func @load.norm(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]:
// CHECK-NEXT: %[[NORM:.*]] = fsdp.part_of @norm "data" : tensor<64xf32>
// CHECK-NEXT: %[[COPY:.*]] = kern.copy %[[ARG0]] into %[[NORM]] : tensor<64xf32> into tensor<64xf32>
// CHECK-NEXT: tfm.return
// CHECK-LABEL: tfm.func @load.w(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]:
// CHECK-NEXT: %[[W:.*]] = fsdp.part_of @w "data" : tensor<8x16xf32>
// CHECK-NEXT: %[[COPY:.*]] = kern.copy %[[ARG0]] into %[[W]] : tensor<8x16xf32> into tensor<8x16xf32>
// CHECK-NEXT: tfm.return

tfm.architecture @plain {
  tfm.param @norm : tensor<64xf32> {hf = "norm.weight"}
  tfm.param @w per_layer : tensor<8x16xf32> {hf = "w.{layer}"}
  tfm.param @a : tensor<8x16xf32> {hf = "a", init = "zeros", trainable}
}

// -----

// One scale a block: codes and scales in one kernel. 5 x 30 = 150 numbers are
// three blocks of 64, the last one short; two codes a byte.
//
// CHECK-LABEL: tfm.architecture @single {
// CHECK-LABEL: tfm.func @load.q(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]:
// CHECK-NEXT: %[[Q:.*]] = fsdp.part_of @q "codes" : tensor<75xi8>
// CHECK-NEXT: %[[Q2:.*]] = fsdp.part_of @q "absmax" : tensor<3xf32>
// CHECK-NEXT: %[[CALL:.*]]:2 = kern.call @quantize_nf4_b64_n150(%[[ARG0]]) into(%[[Q]], %[[Q2]])
// CHECK-SAME: grid = <add = 3, cap = 3> {extents = [], scalars = []}
// CHECK-NEXT: tfm.return

!q = tensor<5x30x!qt.nf4<block = 64, scale = f32>>
tfm.architecture @single {
  tfm.param @q per_layer : !q {hf = "q.{layer}"}
}

// -----

// Scales that are quantised themselves: their mean over the whole tensor first,
// then they in blocks of 256. 512 x 64 / 64 scales are two blocks.
//
// CHECK-LABEL: tfm.architecture @nested {
// CHECK-LABEL: tfm.func @load.q(
// CHECK-SAME: %[[ARG0:[a-z0-9]+]]:
// CHECK-NEXT: %[[Q:.*]] = fsdp.part_of @q "codes" : tensor<16384xi8>
// CHECK-NEXT: %[[EMPTY:.*]] = kern.empty : tensor<512xf32>
// CHECK-NEXT: %[[CALL:.*]]:2 = kern.call @quantize_nf4_b64_n32768(%[[ARG0]]) into(%[[Q]], %[[EMPTY]])
// CHECK-SAME: grid = <add = 512, cap = 512> {extents = [], scalars = []}
// CHECK-NEXT: %[[Q2:.*]] = fsdp.part_of @q "offset" : tensor<1xf32>
// CHECK-NEXT: %[[CALL2:.*]] = kern.call @scale_mean_n512(%[[CALL]]#1) into(%[[Q2]]) grid = <add = 1, cap = 1>
// CHECK-SAME: {extents = [], scalars = []}
// CHECK-NEXT: %[[Q3:.*]] = fsdp.part_of @q "absmax_u8" : tensor<512xi8>
// CHECK-NEXT: %[[Q4:.*]] = fsdp.part_of @q "nested_absmax" : tensor<2xf32>
// CHECK-NEXT: %[[CALL3:.*]]:2 = kern.call @quantize_scales_b256_n512(%[[CALL]]#1, %[[CALL2]])
// CHECK-SAME: into(%[[Q3]], %[[Q4]]) grid = <add = 2, cap = 2> {extents = [], scalars = []}
// CHECK-NEXT: tfm.return

!q = tensor<512x64x!qt.nf4<block = 64, scale = dq<256>>>
tfm.architecture @nested {
  tfm.param @q per_layer : !q {hf = "q.{layer}"}
}
