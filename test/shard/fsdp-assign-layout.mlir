// RUN: %opt %s --fsdp-assign-layout --split-input-file | FileCheck %s

// CHECK-LABEL: tfm.architecture @one
tfm.architecture @one {
  tfm.param @q : tensor<10x3xf32> {hf = "q"}
  tfm.param @k : tensor<5x3xf32> {hf = "k"}
  tfm.param @n : tensor<3xf32> {hf = "n"}
  tfm.param @h : tensor<64xbf16> {hf = "h"}
  fsdp.mesh @mesh ranks = 1
  // Parts start at 64-byte lines; @k is used together with @q and follows it at
  // once. 204 bytes are padded to 256.
  // CHECK: fsdp.unit @joined [@q, @k, @n]
  // CHECK-SAME: {bytes = 256 : i64, parts = [
  // CHECK-SAME: #fsdp.part<@q, "data", offset = 0, bytes = 120>,
  // CHECK-SAME: #fsdp.part<@k, "data", offset = 120, bytes = 60>,
  // CHECK-SAME: #fsdp.part<@n, "data", offset = 192, bytes = 12>]}
  fsdp.unit @joined [@q, @k, @n]
  // CHECK: fsdp.unit @half [@h] {bytes = 256 : i64, parts = [#fsdp.part<@h, "data", offset = 0, bytes = 128>]}
  fsdp.unit @half [@h]
  tfm.func @f() {
    %0 = tfm.use [@q, @k] : tensor<15x3xf32>
    tfm.return
  }
}

// -----

// On a mesh of three the same unit is a multiple of 3 * 256 bytes: every rank
// holds an equal range, wherever parts begin.
// CHECK-LABEL: tfm.architecture @three
tfm.architecture @three {
  tfm.param @q : tensor<10x3xf32> {hf = "q"}
  tfm.param @k : tensor<5x3xf32> {hf = "k"}
  tfm.param @n : tensor<3xf32> {hf = "n"}
  fsdp.mesh @mesh ranks = 3
  // CHECK: fsdp.unit @joined [@q, @k, @n] {bytes = 768 : i64, parts = [#fsdp.part<@q, "data", offset = 0, bytes = 120>, #fsdp.part<@k, "data", offset = 120, bytes = 60>, #fsdp.part<@n, "data", offset = 192, bytes = 12>]}
  fsdp.unit @joined [@q, @k, @n]
  tfm.func @f() {
    %0 = tfm.use [@q, @k] : tensor<15x3xf32>
    tfm.return
  }
}

// -----

// Quantised parameters: their arrays in storage order. Joined ones are
// dequantised one by one and need not be neighbours.
!nf4 = tensor<10x13x!qt.nf4<block = 64, scale = f32>>
!dq = tensor<33x31x!qt.nf4<block = 64, scale = dq<8>>>
// CHECK-LABEL: tfm.architecture @quantised
tfm.architecture @quantised {
  tfm.param @q : !nf4 {hf = "q"}
  tfm.param @k : !nf4 {hf = "k"}
  tfm.param @d : !dq {hf = "d"}
  fsdp.mesh @mesh ranks = 1
  // 130 elements: 65 bytes of codes, 3 scales.
  // CHECK: fsdp.unit @u [@q, @k, @d]
  // CHECK-SAME: #fsdp.part<@q, "codes", offset = 0, bytes = 65>,
  // CHECK-SAME: #fsdp.part<@q, "absmax", offset = 128, bytes = 12>,
  // CHECK-SAME: #fsdp.part<@k, "codes", offset = 192, bytes = 65>,
  // CHECK-SAME: #fsdp.part<@k, "absmax", offset = 320, bytes = 12>,
  // 1023 elements: 512 bytes, 16 scales in 8 bits, 2 nested, an offset.
  // CHECK-SAME: #fsdp.part<@d, "codes", offset = 384, bytes = 512>,
  // CHECK-SAME: #fsdp.part<@d, "absmax_u8", offset = 896, bytes = 16>,
  // CHECK-SAME: #fsdp.part<@d, "nested_absmax", offset = 960, bytes = 8>,
  // CHECK-SAME: #fsdp.part<@d, "offset", offset = 1024, bytes = 4>]}
  fsdp.unit @u [@q, @k, @d]
  tfm.func @f() {
    %0 = tfm.use [@q, @k] : tensor<20x13x!qt.nf4<block = 64, scale = f32>>
    tfm.return
  }
}

// -----

// Without a mesh nothing is laid out.
// CHECK-LABEL: tfm.architecture @none
tfm.architecture @none {
  tfm.param @q : tensor<10x3xf32> {hf = "q"}
  // CHECK: fsdp.unit @u [@q]{{$}}
  fsdp.unit @u [@q]
}
