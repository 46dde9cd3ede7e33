// RUN: %opt %s | %opt | FileCheck %s
// RUN: %opt %s --mlir-print-op-generic | %opt | FileCheck %s

// There is no folder: a value that went through a quantised type is another one.
// RUN: %opt %s --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @plain_scales(%arg0: tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT: %[[Q:.*]] = qt.quantize %arg0 : tensor<64x64xf32> -> tensor<64x64x!qt.nf4<block = 64, scale = f32>>
// CHECK-NEXT: %[[W:.*]] = qt.dequantize %[[Q]] : tensor<64x64x!qt.nf4<block = 64, scale = f32>> -> tensor<64x64xf32>
// CHECK-NEXT: return %[[W]]
func.func @plain_scales(%w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %q = qt.quantize %w : tensor<64x64xf32> -> tensor<64x64x!qt.nf4<block = 64, scale = f32>>
  %v = qt.dequantize %q : tensor<64x64x!qt.nf4<block = 64, scale = f32>> -> tensor<64x64xf32>
  return %v : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @nested_scales(%arg0: tensor<10xbf16>) -> tensor<10xf16>
// CHECK-NEXT: %[[Q:.*]] = qt.quantize %arg0 : tensor<10xbf16> -> tensor<10x!qt.fp4<block = 4096, scale = dq<256>>>
// CHECK-NEXT: %[[W:.*]] = qt.dequantize %[[Q]] : tensor<10x!qt.fp4<block = 4096, scale = dq<256>>> -> tensor<10xf16>
func.func @nested_scales(%w: tensor<10xbf16>) -> tensor<10xf16> {
  %q = qt.quantize %w : tensor<10xbf16> -> tensor<10x!qt.fp4<block = 4096, scale = dq<256>>>
  %v = qt.dequantize %q : tensor<10x!qt.fp4<block = 4096, scale = dq<256>>> -> tensor<10xf16>
  return %v : tensor<10xf16>
}
